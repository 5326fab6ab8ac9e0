package belay

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/belay-run/belay/hook"
)

// steppedTools is the toolset of a step: the agent's tools, and those that
// extensions bring for it. As long as neither changes it serves every step.
type steppedTools struct {
	base     *toolset
	brought  [][]Tool // by extension
	set      *toolset
	problems []stepProblem
}

// stepProblem is why a tool that an extension brings is left out.
type stepProblem struct {
	code    hook.Code
	from    string
	message string
	err     error
}

// stepTools returns the tools of the next step. The turn is told once what is wrong
// with them.
func (t *turn) stepTools() *toolset {
	base := t.agent.tools.Load()
	if len(t.agent.steppers) == 0 {
		return base
	}
	now := t.agent.step(base)
	if now != t.stepped {
		t.stepped = now
		for _, p := range now.problems {
			t.diagnose(p.code, TurnPreToolMaterialization.Name(), p.from, p.message)
		}
	}
	return now.set
}

// step asks the extensions for their tools.
func (a *Agent) step(base *toolset) *steppedTools {
	brought := make([][]Tool, len(a.steppers))
	for i, e := range a.steppers {
		brought[i] = e.StepTools(a.opts.Name)
	}
	last := a.stepped.Load()
	if last != nil && last.base == base && slices.EqualFunc(last.brought, brought, sameTools) {
		return last
	}
	now := &steppedTools{base: base, brought: brought, set: base}
	known := make(map[Tool]*boundTool)
	if last != nil {
		for _, b := range last.set.tools {
			if comparableTool(b.Tool) {
				known[b.Tool] = b
			}
		}
	}
	owner := make(map[string]string)
	var bound []*boundTool
	for i, tools := range brought {
		from := a.steppers[i].Name()
		for _, tool := range tools {
			b, ok := (*boundTool)(nil), false
			if tool != nil && comparableTool(tool) {
				b, ok = known[tool]
			}
			if !ok {
				var err error
				if b, err = a.bind(tool, from); err != nil {
					now.refuse(hook.CodeBundleUnrouted, from, "a tool of the extension has a name or a schema that cannot be used", err)
					continue
				}
			}
			switch other, taken := owner[b.name]; {
			case base.byName[b.name] != nil:
				now.refuse(hook.CodeToolConflict, from, "a tool of the extension has the name of one of the agent's", fmt.Errorf("tool %q: the agent has another of that name: it is of %s", b.name, ownerText(base.byName[b.name].owner)))
			case taken:
				now.refuse(hook.CodeToolConflict, from, "a tool of the extension has the name of another extension's", fmt.Errorf("tool %q: extension %q has another of that name", b.name, other))
			default:
				owner[b.name] = from
				bound = append(bound, b)
			}
		}
	}
	if len(bound) > 0 {
		now.set = newToolset(slices.Concat(base.tools, bound))
	}
	a.stepped.Store(now)
	return now
}

func (s *steppedTools) refuse(code hook.Code, from, message string, err error) {
	s.problems = append(s.problems, stepProblem{code, from, message, fmt.Errorf("extension %q: %w", from, err)})
}

// checkStepTools finds mistakes before the first turn.
func (a *Agent) checkStepTools() error {
	if len(a.steppers) == 0 {
		return nil
	}
	now := a.step(a.tools.Load())
	problems := make([]error, 0, len(now.problems)+1)
	for _, p := range now.problems {
		problems = append(problems, p.err)
	}
	return errors.Join(append(problems, a.model.check(now.set.declared))...)
}

// sameTools reports whether an extension brings what it brought before.
func sameTools(a, b []Tool) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !comparableTool(a[i]) || !comparableTool(b[i]) || a[i] != b[i] {
			return false
		}
	}
	return true
}

// comparableTool reports whether a tool can be told from others: a pointer can.
func comparableTool(t Tool) bool {
	return t == nil || reflect.TypeOf(t).Comparable()
}
