package skill

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/scan"
)

// kind is the key of skills in Options.Resources of an agent.
const kind = "skills"

// Resources returns the kind of resource, "skills". An agent's Options.Resources can
// limit this kind by names, ids or patterns.
func (e *Extension) Resources() []string { return []string{kind} }

// For returns the extension for an agent, with only the skills that the agent may use.
func (e *Extension) For(reach belay.Reach) belay.Extension { return &scoped{e, reach} } //nolint:ireturn // see the interface

// StepTools returns the tools for an agent that may use all skills.
func (e *Extension) StepTools(agent string) []belay.Tool { return e.forAll(agent).StepTools(agent) }

// Binds reports whether /name is the name or id of a skill that the agent may use.
func (e *Extension) Binds(agent, name string) bool { return e.forAll(agent).Binds(agent, name) }

// TypedNames returns the skills that a user can type as /name.
func (e *Extension) TypedNames(agent string) []belay.TypedName {
	return e.forAll(agent).TypedNames(agent)
}

func (e *Extension) forAll(agent string) *scoped { return &scoped{e, belay.Reach{Agent: agent}} }

// in returns the extension for the agent and the turn of a hook.
func (e *Extension) in(ctx context.Context, agent string) *scoped {
	reach := belay.ReachOf(ctx)
	reach.Agent = agent
	return &scoped{e, reach}
}

// scoped is the extension limited to the skills that one agent may use in one turn. All
// code that uses a skill for an agent must go through it.
type scoped struct {
	*Extension

	reach belay.Reach
}

func (s *scoped) has(skill *Skill) bool {
	return skill.isFor(s.reach.Agent) && s.reach.Allows(kind, skill.Name, skill.ID)
}

// find returns the skill with the given name or id, or nil if the agent may not use it.
func (s *scoped) find(now *set, key string) *owned {
	if o := now.find(key); o != nil && s.has(o.skill) {
		return o
	}
	return nil
}

// active returns the skills that a message makes active by triggers or skill:ID.
func (s *scoped) active(now *set, text string) []Match {
	return slices.DeleteFunc(now.matcher().match(taskOf(text), s.reach.Agent), func(m Match) bool { return !s.has(m.Skill) })
}

// Binds reports whether /name is the name or id of a skill that users may type.
func (s *scoped) Binds(_, name string) bool {
	if s.opts.NoNames {
		return false
	}
	s.catalog.freshen(context.Background(), s.opts.Refresh)
	o := s.find(s.catalog.now.Load(), name)
	return o != nil && !o.skill.ModelOnly
}

// TypedNames returns the skills that a user can type as /name.
func (s *scoped) TypedNames(string) []belay.TypedName {
	if s.opts.NoNames {
		return nil
	}
	s.catalog.freshen(context.Background(), s.opts.Refresh)
	now := s.catalog.now.Load()
	var names []belay.TypedName
	for _, one := range now.skills {
		if one.ModelOnly || !s.has(one) {
			continue
		}
		var spelled []string // the name and the id, if they can be typed and no other skill has them
		for _, key := range []string{one.Name, one.ID} {
			if scan.Valid(key) && now.find(key).skill == one && !slices.Contains(spelled, key) {
				spelled = append(spelled, key)
			}
		}
		if len(spelled) > 0 {
			names = append(names, belay.TypedName{Name: spelled[0], Description: one.Description, Aliases: append([]string(nil), spelled[1:]...)})
		}
	}
	return names
}

// madeTools are the cached tools of an agent, and the lists from which they were made.
type madeTools struct {
	of    *set
	lists []toolList
	tools []belay.Tool
}

// toolList is the name of a tool, and the list of skills for its description.
type toolList struct{ tool, listing, leftOut string }

// tool is read_skill or invoke_skill, with a list of skills in its description.
type tool struct {
	belay.Tool

	traits  belay.ToolTraits
	leftOut string
}

var (
	_ belay.TraitTool   = (*tool)(nil)
	_ belay.ListingTool = (*tool)(nil)
)

// Traits returns the traits of the tool: read_skill is idempotent.
func (t *tool) Traits() belay.ToolTraits { return t.traits }

// LeftOut returns a text for the user about skills that did not fit into the list.
func (t *tool) LeftOut() string { return t.leftOut }

// keptReaches is the maximum number of reaches whose tools are cached. A reach belongs to
// an agent and its parents. The number of agent names has no limit, so the cache needs one.
const keptReaches = 256

// StepTools returns the tools for the current skills of the catalog. It returns none if
// there are no skills, so that the extension does not change the model request.
func (s *scoped) StepTools(string) []belay.Tool {
	now := s.catalog.now.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	made, ok := s.tools[s.reach]
	if ok && made.of == now {
		return made.tools
	}
	lists := s.lists(now)
	if !ok || !slices.Equal(lists, made.lists) {
		made = madeTools{lists: lists}
		for _, l := range lists {
			made.tools = append(made.tools, s.tool(l))
		}
	}
	made.of = now
	if !ok && len(s.tools) >= keptReaches {
		clear(s.tools)
	}
	s.tools[s.reach] = made
	return made.tools
}

var (
	readSchema = json.RawMessage(`{"type":"object","properties":{` +
		`"name":{"type":"string","description":"the skill's name"},` +
		`"section":{"type":"string","description":"one of its sections; omit it to read the skill itself"}},` +
		`"required":["name"],"additionalProperties":false}`)
	invokeSchema = json.RawMessage(`{"type":"object","properties":{` +
		`"name":{"type":"string","description":"the skill's name"},` +
		`"args":{"type":"string","description":"details that the skill needs"}},` +
		`"required":["name"],"additionalProperties":false}`)
)

// lists returns the lists for the two tools. A tool without skills has no list.
func (s *scoped) lists(now *set) []toolList {
	var read, invoke []*Skill
	for _, one := range now.skills {
		switch {
		case !s.has(one):
		case one.callable():
			invoke = append(invoke, one)
		case one.content() && !one.UserOnly: // hidden ones count: the model can read them by name
			read = append(read, one)
		}
	}
	budget := cmp.Or(s.opts.Budget, ListingBudget(s.reach.Window))
	var lists []toolList
	for _, l := range []struct {
		tool   string
		skills []*Skill
	}{{s.opts.ToolName, read}, {InvokeTool, invoke}} {
		if len(l.skills) > 0 {
			text, left := list(l.skills, budget)
			lists = append(lists, toolList{l.tool, text, left.Message("skill", budget)})
		}
	}
	return lists
}

// tool makes a tool with a list of skills.
func (s *scoped) tool(l toolList) belay.Tool { //nolint:ireturn // a tool is used through the interface
	d := belay.ToolDeclaration{Name: l.tool, Description: ReadDescription(l.listing, s.opts.Suffix), InputSchema: readSchema}
	if l.tool == InvokeTool {
		d.Description, d.InputSchema = InvokeDescription(l.listing, s.opts.Suffix), invokeSchema
	}
	traits := belay.ToolTraits{Idempotent: l.tool != InvokeTool}
	return &tool{belay.NewRawTool(d, s.call, &traits), traits, l.leftOut}
}

// call handles calls of both tools.
func (s *scoped) call(ctx context.Context, call *belay.Invocation) (belay.Result, error) {
	var in struct{ Name, Section, Args string }
	if err := call.Decode(&in); err != nil {
		return belay.Failed(belay.ClassInvalid, err.Error()), nil
	}
	now := s.catalog.now.Load()
	o := s.find(now, in.Name)
	if call.Tool == InvokeTool {
		if o == nil || !o.skill.callable() {
			return notFound(now.missing(in.Name, func(one *Skill) bool { return one.callable() && !one.Hidden && s.has(one) })), nil
		}
		use := &Use{
			Name: o.skill.Name, Source: ByAgent, Text: in.Args, Args: in.Args,
			Session: call.Session, Turn: call.Turn, Agent: call.Agent, Controls: call.Controls(),
		}
		use.tell()
		return o.invoke(ctx, use)
	}
	if o == nil || !o.skill.content() || o.skill.UserOnly {
		return notFound(now.missing(in.Name, func(one *Skill) bool { return one.listedToRead() && s.has(one) })), nil
	}
	r, err := o.read(ctx, in.Section)
	if errors.Is(err, ErrNotFound) {
		return notFound(err), nil
	}
	if err != nil {
		return belay.Result{}, err
	}
	if o.skill.template() && in.Section == "" {
		v := s.variables(r.Text, call.Agent, "{{task}}") // the tool does not know the task, so {{task}} stays
		r.Text = v.Expand(r.Text)
	}
	render, err := json.Marshal(r)
	if err != nil {
		return belay.Result{}, fmt.Errorf("skill %q: %w", in.Name, err)
	}
	return belay.Result{Text: r.Element(), Render: render}, nil
}
