package subagent

import (
	"slices"
	"strings"
	"sync"

	"github.com/belay-run/belay"
)

// kind is the key of subagents in Options.Resources of an agent.
const kind = "subagents"

// Resources returns the kind of resource, "subagents". An agent's Options.Resources can
// limit this kind by names or patterns.
func (e *Extension) Resources() []string { return []string{kind} }

// For returns the extension for an agent, with only the subagents that the agent may
// call.
func (e *Extension) For(reach belay.Reach) belay.Extension { return &scoped{e, reach} } //nolint:ireturn // see the interface

// StepTools returns the tools for an agent that may call all subagents.
func (e *Extension) StepTools(agent string) []belay.Tool {
	return (&scoped{e, belay.Reach{Agent: agent}}).StepTools(agent)
}

// scoped is the extension limited to the subagents that one agent may call in one turn.
// All code that lists or calls subagents for an agent must go through it.
type scoped struct {
	*Extension

	reach belay.Reach
}

func (s *scoped) has(one *Subagent) bool {
	return (len(one.Agents) == 0 || slices.Contains(one.Agents, s.reach.Agent)) && s.reach.Allows(kind, one.Name)
}

// all returns the subagents that the agent may call.
func (s *scoped) all(now *set) []*Subagent {
	var own []*Subagent
	for _, one := range now.all {
		if s.has(one) {
			own = append(own, one)
		}
	}
	return own
}

// find returns a subagent that the agent may call. If there is none with this name, find
// returns nil and the names of all that the agent may call.
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

// set is a snapshot of the subagents. Its list never changes.
type set struct {
	all []*Subagent // sorted by name

	mu    sync.Mutex
	tools map[belay.Reach][]belay.Tool // made on first use
}

func newSet(all []*Subagent) *set {
	slices.SortFunc(all, func(a, b *Subagent) int { return strings.Compare(a.Name, b.Name) })
	return &set{all: all}
}

// keptReaches is the maximum number of reaches whose tools are cached. A reach belongs to
// an agent and its parents. The number of agent names has no limit, so the cache needs one.
const keptReaches = 256

// StepTools returns the tools for the agent's next step. It returns the same values until
// the subagents change.
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
