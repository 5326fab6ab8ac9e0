package subagent

import (
	"slices"
	"strings"
	"sync"

	"github.com/belay-run/belay"
)

// kind is what Options.Resources of an agent calls subagents.
const kind = "subagents"

// Resources are subagents: Options.Resources of an agent can name those that it may call, by
// their names or patterns of them.
func (e *Extension) Resources() []string { return []string{kind} }

// For returns the extension with nothing but the subagents that an agent may call.
func (e *Extension) For(reach belay.Reach) belay.Extension { return &scoped{e, reach} } //nolint:ireturn // see the interface

// StepTools are the tools of an agent that may call all subagents.
func (e *Extension) StepTools(agent string) []belay.Tool {
	return (&scoped{e, belay.Reach{Agent: agent}}).StepTools(agent)
}

// scoped is the extension as an agent may use it in a turn. Whatever lists or calls a
// subagent for an agent asks it which ones there are.
type scoped struct {
	*Extension

	reach belay.Reach
}

// has reports whether the agent may call a subagent.
func (s *scoped) has(one *Subagent) bool {
	return (len(one.Agents) == 0 || slices.Contains(one.Agents, s.reach.Agent)) && s.reach.Allows(kind, one.Name)
}

// all returns the subagents of the agent.
func (s *scoped) all(now *set) []*Subagent {
	var own []*Subagent
	for _, one := range now.all {
		if s.has(one) {
			own = append(own, one)
		}
	}
	return own
}

// find returns a subagent of the agent, or nil and the names of those it has.
func (s *scoped) find(name string) (*Subagent, []string) {
	own := s.all(s.now.Load())
	names := make([]string, len(own))
	for i, one := range own {
		if one.Name == name {
			return one, nil
		}
		names[i] = one.Name
	}
	return nil, names
}

// set is the subagents at one time. It is never changed.
type set struct {
	all []*Subagent // by name

	mu    sync.Mutex
	tools map[belay.Reach][]belay.Tool // made when they are first asked for
}

func newSet(all []*Subagent) *set {
	slices.SortFunc(all, func(a, b *Subagent) int { return strings.Compare(a.Name, b.Name) })
	return &set{all: all}
}

// keptReaches is for how many agents, and how many parents of theirs, a set keeps its tools:
// names of agents can be made up without end.
const keptReaches = 256

// StepTools are the tools of the agent's next step: the same ones as long as the subagents
// are.
func (s *scoped) StepTools(string) []belay.Tool {
	now := s.now.Load()
	if len(now.all) == 0 {
		return nil
	}
	now.mu.Lock()
	defer now.mu.Unlock()
	tools, ok := now.tools[s.reach]
	if ok {
		return tools
	}
	if own := s.all(now); len(own) > 0 {
		tools = append(tools, s.invokeTool(own))
		if s.opts.Delegate {
			tools = append(tools, s.delegateTool())
		}
	}
	if now.tools == nil || len(now.tools) >= keptReaches {
		now.tools = make(map[belay.Reach][]belay.Tool)
	}
	now.tools[s.reach] = tools
	return tools
}
