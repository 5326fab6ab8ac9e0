package belay

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/belay-run/belay/hook/codes"
)

// steppedTools is the toolset of a step: the agent's tools, and the tools that extensions
// provide for the step. The agent reuses it until its own tools or the provided tools
// change.
type steppedTools struct {
	base     *toolset
	composed *composition
	reach    Reach
	brought  [][]Tool      // the tools of each extension
	broke    []stepProblem // the extensions that failed
	set      *toolset
	problems []stepProblem
	leftOut  []stepProblem // the lists of tools that are incomplete: see ListingTool
}

// stepProblem describes a problem with a tool of an extension, or with all its tools.
type stepProblem struct {
	code    codes.Code
	from    string
	message string
	err     error
}

// stepper is an extension that provides tools for each step.
type stepper struct {
	StepToolExtension
	name string
}

// ask returns the extension's tools for an agent's next step.
func (s stepper) ask(reach Reach) []Tool {
	if r, ok := s.StepToolExtension.(ResourceExtension); ok {
		if st, ok := r.For(reach).(StepToolExtension); ok {
			return st.StepTools(reach.Agent)
		}
		return nil
	}
	return s.StepTools(reach.Agent)
}

// tools calls ask and recovers from a panic.
func (s stepper) tools(reach Reach) (tools []Tool, err error) {
	err = safely(s.name, func() error { tools = s.ask(reach); return nil })
	return tools, err
}

// stepTools returns the tools of the next step. It reports each problem once to the turn.
func (t *turn) stepTools() *toolset {
	base, composed := t.agent.tools.Load(), t.agent.composed.Load()
	if len(composed.steppers) == 0 {
		return base
	}
	now := t.agent.step(base, composed, t.reach())
	if now != t.request.stepped {
		t.request.stepped = now
		for _, p := range now.problems {
			t.diagnose(p.code, TurnPreToolMaterialization.Name(), p.from, p.message)
		}
		for _, p := range now.leftOut {
			if _, told := t.agent.toldLists.LoadOrStore(p.from, true); !told {
				t.diagnose(p.code, TurnPreToolMaterialization.Name(), p.from, p.message)
			}
		}
	}
	return now.set
}

// known maps each comparable tool to its bound form.
func (s *steppedTools) known() map[Tool]*boundTool {
	known := make(map[Tool]*boundTool)
	if s != nil {
		for _, b := range s.set.tools {
			if comparableTool(b.Tool) {
				known[b.Tool] = b
			}
		}
	}
	return known
}

// ask asks the extensions for their tools. brought is nil if the tools have not changed. An
// extension that panics has no tools.
func (a *Agent) ask(composed *composition, before *steppedTools, reach Reach) (brought [][]Tool, broke []stepProblem) {
	for i, e := range composed.steppers {
		tools, err := e.tools(reach)
		if err != nil {
			a.opts.Logger.Warn("the tools of an extension are missing", "agent", a.opts.Name, "error", err)
			broke = append(broke, stepProblem{codes.Panic, e.name, "the extension panicked in StepTools, so its tools are missing", err})
		}
		if brought == nil && before != nil && sameTools(before.brought[i], tools) {
			continue
		}
		if brought == nil {
			brought = make([][]Tool, len(composed.steppers))
			if before != nil {
				copy(brought, before.brought[:i])
			}
		}
		brought[i] = tools
	}
	return brought, broke
}

// step returns the toolset for a reach: the tools in base, and the tools that extensions
// provide now.
func (a *Agent) step(base *toolset, composed *composition, reach Reach) *steppedTools {
	last := a.lastStep(reach)
	same := last != nil && last.base == base && last.composed == composed
	if same && len(last.broke) == 0 && last.bringTheSame() {
		return last
	}
	before := last
	if !same {
		before = nil
	}
	brought, broke := a.ask(composed, before, reach)
	if brought == nil { // the tools have not changed
		if slices.EqualFunc(last.broke, broke, func(x, y stepProblem) bool { return x.err.Error() == y.err.Error() }) {
			return last
		}
		brought = last.brought
	}
	now := &steppedTools{base: base, composed: composed, reach: reach, brought: brought, broke: broke, set: base, problems: slices.Clone(broke)}
	known := make(map[Tool]*boundTool)
	if last != nil && last.composed == composed { // another composition may have another scope
		known = last.known()
	}
	owner := make(map[string]string)
	var bound []*boundTool
	for i, tools := range brought {
		from := composed.steppers[i].name
		for _, tool := range tools {
			b, ok := (*boundTool)(nil), false
			if tool != nil && comparableTool(tool) {
				b, ok = known[tool]
				ok = ok && b.owner == from
			}
			if !ok {
				var err error
				if b, err = a.bind(composed, tool, from); err != nil {
					now.refuse(codes.BundleUnrouted, from, "a tool of the extension is invalid", err)
					continue
				}
			}
			switch other, taken := owner[b.name]; {
			case base.byName[b.name] != nil:
				now.refuse(codes.ToolConflict, from, "a tool of the extension was left out: the agent already has a tool with this name", fmt.Errorf("tool %q: the agent already has a tool with this name, from %s", b.name, ownerText(base.byName[b.name].owner)))
			case taken:
				now.refuse(codes.ToolConflict, from, "a tool of the extension was left out: another extension has a tool with this name", fmt.Errorf("tool %q: extension %q has a tool with the same name", b.name, other))
			default:
				owner[b.name] = from
				bound = append(bound, b)
				now.noteList(b)
			}
		}
	}
	if len(bound) > 0 {
		now.set = newToolset(slices.Concat(base.tools, bound))
	}
	a.keepStep(now)
	return now
}

// noteList records which entries a tool's list leaves out, if the agent may use the tool.
// It recovers from a panic of the tool.
func (s *steppedTools) noteList(b *boundTool) {
	l, ok := b.Tool.(ListingTool)
	if !ok || !b.inScope {
		return
	}
	var message string
	if err := safely(b.name, func() error { message = l.LeftOut(); return nil }); err == nil && message != "" {
		s.leftOut = append(s.leftOut, stepProblem{code: codes.ListingTruncated, from: b.name, message: message})
	}
}

// mostSteps is how many toolsets an agent caches. There is one for each reach. An agent
// has its own reach, and another one as a child of each parent.
const mostSteps = 4

// lastStep returns the last toolset of a reach, or nil.
func (a *Agent) lastStep(reach Reach) *steppedTools {
	kept := a.stepped.Load()
	if kept == nil {
		return nil
	}
	for _, s := range *kept {
		if s.reach == reach {
			return s
		}
	}
	return nil
}

// keepStep caches a toolset as the newest one. It replaces the old toolset of the same
// reach.
func (a *Agent) keepStep(now *steppedTools) {
	next := []*steppedTools{now}
	if kept := a.stepped.Load(); kept != nil {
		for _, s := range *kept {
			if s.reach != now.reach && len(next) < mostSteps {
				next = append(next, s)
			}
		}
	}
	a.stepped.Store(&next)
}

// bringTheSame reports whether the extensions provide the same tools as before. This is the
// usual case and cheap to check.
func (s *steppedTools) bringTheSame() (same bool) {
	defer func() {
		if recover() != nil { // Agent.ask finds out which extension panicked
			same = false
		}
	}()
	for i, e := range s.composed.steppers {
		if !sameTools(s.brought[i], e.ask(s.reach)) {
			return false
		}
	}
	return true
}

func (s *steppedTools) refuse(code codes.Code, from, message string, err error) {
	s.problems = append(s.problems, stepProblem{code, from, message, fmt.Errorf("extension %q: %w", from, err)})
}

// checkStepTools returns the problems of step tools. New and Add call it, so that a caller
// learns of the problems before the first turn.
func (a *Agent) checkStepTools(base *toolset, composed *composition) error {
	if len(composed.steppers) == 0 {
		return nil
	}
	now := a.step(base, composed, a.reach())
	problems := make([]error, 0, len(now.problems)+1)
	for _, p := range now.problems {
		problems = append(problems, p.err)
	}
	return errors.Join(append(problems, a.model.check(now.set.declared))...)
}

// sameTools reports whether two lists have the same tools in the same order.
func sameTools(a, b []Tool) bool {
	if len(a) != len(b) {
		return false
	}
	if len(a) == 0 || &a[0] == &b[0] { // the same slice
		return true
	}
	for i := range a {
		if !comparableTool(a[i]) || !comparableTool(b[i]) || a[i] != b[i] {
			return false
		}
	}
	return true
}

// comparableTool reports whether a tool can be compared with ==.
func comparableTool(t Tool) bool {
	return t == nil || reflect.ValueOf(t).Comparable()
}
