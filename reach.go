package belay

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/belay-run/belay/internal/near"
)

// Reach describes what an agent may use in a turn. The zero value has no agent name and
// allows everything.
type Reach struct {
	// Agent is the agent's name.
	Agent string
	// Window is the context window, in tokens, of the model that gets the next request. It
	// is zero if it is unknown, and in the result of ReachOf. Lists for the model can grow
	// with it.
	Window int

	limits *limits
}

// Allows reports whether the agent may use a resource of a kind, such as a skill. The
// resource may have several names. Each agent, from this one up to the topmost parent, must
// allow one of them, unless its Options.Resources do not restrict the kind.
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

// ReachOf returns the reach of the turn to which the context of a hook or a tool call
// belongs. Outside a turn it allows everything.
func ReachOf(ctx context.Context) Reach {
	r, _ := ctx.Value(reachKey{}).(Reach)
	return r
}

type reachKey struct{}

// limits are the Options.Resources of an agent and of the agents above it. They are never
// changed.
type limits struct {
	own   map[string][]string // by kind; a kind that is not there is not restricted
	above *limits
}

// ResourceExtension brings resources other than tools, such as skills, and enforces which of
// them an agent may use. Hooks of the extension get the reach from [ReachOf].
type ResourceExtension interface {
	Extension
	// Resources returns the kinds that the extension enforces: keys of Options.Resources.
	Resources() []string
	// For returns the extension restricted to what a reach allows. The agent calls the
	// methods of StepToolExtension and NameExtension on the returned value. For is called
	// before each message and each model request, and should be cheap.
	For(reach Reach) Extension
}

// readKinds asks for the kinds of resources that are enforced for the extension. If it is
// not a ResourceExtension, this is its name: the loop then enforces the names of its tools
// and the names that users type. An extension with neither has no kinds.
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

// checkResources refuses kinds that no extension enforces: the model would otherwise be
// told about a restriction that does not exist.
func (c *composition) checkResources() error {
	var known []string
	for _, x := range c.extensions {
		known = append(known, x.kinds...)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for _, kind := range slices.Sorted(maps.Keys(c.config.Resources)) {
		if !slices.Contains(known, kind) {
			return fmt.Errorf("resources: no extension enforces %q%s: the known ones are %s", kind, near.Hint(kind, known), quotedNames(known))
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

// limit sets what the turn may use, and returns a context in which hooks and tools find it.
func (t *turn) limit(ctx context.Context) context.Context {
	t.limits = t.agent.limits
	if t.lineage != nil {
		t.limits = t.agent.limitsBelow(t.lineage.parent.limits)
	}
	if t.limits == nil && ctx.Value(reachKey{}) == nil {
		return ctx
	}
	return context.WithValue(ctx, reachKey{}, Reach{Agent: t.agent.opts.Name, limits: t.limits}) // the model that answers is not known yet
}

// limitsBelow returns the limits of the agent as a child of an agent with limits. It
// returns the same pointer for each task of a parent, because caches use it as a key.
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
			return fmt.Errorf("it is nil for agent %q", reach.Agent)
		}
		return nil
	})
	return e, err
}

// namesOf returns an extension with names that users type, and a function that reports
// whether a name belongs to it. Both are nil if it has none.
func (a *Agent) namesOf(x *attached, reach Reach) (NameExtension, func(name string) bool) { //nolint:ireturn // it is one of several extensions
	e, err := x.within(reach)
	if err != nil {
		a.opts.Logger.Warn("the names of an extension cannot be used", "agent", a.opts.Name, "error", err)
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
