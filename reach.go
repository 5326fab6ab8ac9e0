package belay

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/belay-run/belay/internal/near"
)

// Reach describes what an agent may use in a turn. The zero value allows everything.
type Reach struct {
	// Agent is the agent's name.
	Agent string
	// Window is the context window, in tokens, of the model that gets the next request.
	// Extensions may send longer lists to a model with a large window. Window is 0 if it
	// is unknown. In the result of ReachOf it is always 0.
	Window int

	limits *limits
}

// Allows reports whether the agent may use a resource of a kind, such as a skill. A
// resource may have several names. This agent and each of its parent agents must allow at
// least one of the names. An agent whose Options.Resources does not have the kind allows
// all names.
func (r Reach) Allows(kind string, names ...string) bool {
	for l := r.limits; l != nil; l = l.above {
		allowed, restricted := l.own[kind]
		if restricted && !slices.ContainsFunc(names, func(name string) bool {
			return slices.ContainsFunc(allowed, func(pattern string) bool { return pattern == name || matches(pattern, name) })
		}) {
			return false
		}
	}
	return true
}

// ReachOf returns the reach of the turn that a hook or a tool call belongs to. ctx is the
// context of that hook or call. Outside a turn the reach allows everything.
func ReachOf(ctx context.Context) Reach {
	r, _ := ctx.Value(reachKey{}).(Reach)
	return r
}

type reachKey struct{}

// limits are the Options.Resources of an agent and of the agents above it. They never
// change.
type limits struct {
	own   map[string][]string // by kind; a missing kind is not restricted
	above *limits
}

// ResourceExtension provides resources other than tools, such as skills, and enforces which
// of them an agent may use. Hooks of the extension call [ReachOf] to find out.
type ResourceExtension interface {
	Extension
	// Resources returns the kinds that the extension enforces: keys of Options.Resources.
	Resources() []string
	// For returns the extension restricted to what the reach allows. Belay calls the
	// methods of StepToolExtension and NameExtension on the returned value. For is called
	// before each message and each model request, so it should be fast.
	For(reach Reach) Extension
}

// readKinds reads the kinds of resources that are enforced for the extension. A
// ResourceExtension lists its kinds. For any other extension with tools or typed names, the
// kind is the extension's name, and Belay itself enforces it.
func (x *attached) readKinds() (err error) {
	if r, ok := x.Extension.(ResourceExtension); ok {
		err = safely(x.name, func() error { x.kinds = slices.Clone(r.Resources()); return nil })
	}
	switch x.Extension.(type) {
	case ScopeExtension:
		x.kinds = append(x.kinds, x.name)
	case ResourceExtension:
	case ToolExtension, StepToolExtension, RouteExtension, NameExtension:
		x.kinds = append(x.kinds, x.name)
	}
	return err
}

// checkResources returns an error for a kind that no extension enforces. Otherwise the
// prompt would tell the model about a restriction that does not exist.
func (c *composition) checkResources() error {
	var known []string
	for _, x := range c.extensions {
		known = append(known, x.kinds...)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for _, kind := range slices.Sorted(maps.Keys(c.config.Resources)) {
		if !slices.Contains(known, kind) {
			return fmt.Errorf("resources: no extension enforces the kind %q%s: known kinds are %s", kind, near.Hint(kind, known), quotedNames(known))
		}
	}
	return nil
}

// reach returns what the agent may use, without the limits of agents above it.
func (a *Agent) reach() Reach {
	return Reach{Agent: a.opts.Name, Window: cmp.Or(a.opts.Compaction.Window, a.model.info.Window), limits: a.limits}
}

// reach returns what the turn may use.
func (t *turn) reach() Reach {
	return Reach{Agent: t.agent.opts.Name, Window: t.window(), limits: t.limits}
}

// limit sets what the turn may use. It returns a context in which hooks and tools find the
// reach.
func (t *turn) limit(ctx context.Context) context.Context {
	t.limits = t.agent.limits
	if t.lineage != nil {
		t.limits = t.agent.limitsBelow(t.lineage.parent.limits)
	}
	if t.limits == nil && ctx.Value(reachKey{}) == nil {
		return ctx
	}
	return context.WithValue(ctx, reachKey{}, Reach{Agent: t.agent.opts.Name, limits: t.limits}) // without Window: the turn's model is not known yet
}

// limitsBelow returns the limits of this agent as a child of an agent with the limits
// above. It returns the same pointer for each child run of one parent, because caches use
// the pointer as a key.
func (a *Agent) limitsBelow(above *limits) *limits {
	switch {
	case above == nil:
		return a.limits
	case a.limits == nil:
		return above
	}
	if last := a.below.Load(); last != nil && last.above == above {
		return last
	}
	next := &limits{own: a.limits.own, above: above}
	a.below.Store(next)
	return next
}

// within returns the extension restricted to a reach.
func (x *attached) within(reach Reach) (e Extension, err error) { //nolint:ireturn // it is one of several extensions
	r, ok := x.Extension.(ResourceExtension)
	if !ok {
		return x.Extension, nil
	}
	err = safely(x.name, func() error {
		if e = r.For(reach); e == nil {
			return fmt.Errorf("its For method returned nil for agent %q", reach.Agent)
		}
		return nil
	})
	return e, err
}

// namesOf returns the extension if it has names that users type, and a function that
// reports whether a name belongs to it. Otherwise both are nil.
func (a *Agent) namesOf(x *attached, reach Reach) (NameExtension, func(name string) bool) { //nolint:ireturn // it is one of several extensions
	e, err := x.within(reach)
	if err != nil {
		a.opts.Logger.Warn("an extension failed, so users cannot type its names", "agent", a.opts.Name, "error", err)
		return nil, nil
	}
	n, ok := e.(NameExtension)
	if !ok {
		return nil, nil
	}
	return n, func(name string) bool {
		if _, enforces := x.Extension.(ResourceExtension); !enforces && !reach.Allows(x.name, name) {
			return false
		}
		return n.Binds(reach.Agent, name)
	}
}
