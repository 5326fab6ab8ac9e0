package belay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Add adds extensions to the agent, all of them or none. A turn that is running has their
// tools from its next step on; everything else applies from the next turn on.
//
// An extension with a Build method may change the instructions. It cannot change the
// resources any more: use [Agent.Replace] for that.
//
// Closing the lease removes the extensions, calls their Unregister method and ends their
// Watch method. It does not close them. [Agent.Close] closes those that are still there.
func (a *Agent) Add(ctx context.Context, extensions ...Extension) (*Lease, error) {
	a.adding.Lock()
	defer a.adding.Unlock()
	lease, err := a.add(ctx, extensions)
	if err != nil {
		return nil, fmt.Errorf("add extensions: %w", err)
	}
	return lease, nil
}

func (a *Agent) add(ctx context.Context, extensions []Extension) (_ *Lease, err error) {
	if a.closed.Load() || a.leaving.Load() {
		return nil, ErrClosed
	}
	before := a.composed.Load()
	next, err := before.with(ctx, extensions)
	if err != nil {
		return nil, err
	}
	if !maps.EqualFunc(next.config.Resources, before.config.Resources, slices.Equal) {
		return nil, errors.New("a Build changed the resources: that is possible only when the agent is made (New or Replace)")
	}
	added := next.extensions[len(before.extensions):]
	brought, err := gather(added)
	if err != nil {
		return nil, err
	}
	if err := a.register(ctx, next, added, a.namesWith(next, brought.tools)); err != nil { // they know the agent before it uses them
		return nil, err
	}
	undo := []func() error{func() error { return a.unregister(context.WithoutCancel(ctx), added) }}
	defer func() {
		if err != nil {
			for _, f := range slices.Backward(undo) {
				err = errors.Join(err, f())
			}
		}
	}()
	tools, err := a.addTools(next, brought.tools)
	if err != nil {
		return nil, err
	}
	undo = append(undo, tools.Close)
	if err := a.checkStepTools(next); err != nil {
		return nil, err
	}
	directives, err := a.Define(brought.directives...)
	if err != nil {
		return nil, err
	}
	undo = append(undo, directives.Close)
	hooks, err := a.hooks.Install(brought.hooks...)
	if err != nil {
		return nil, err
	}
	undo = append(undo, hooks.Close)
	a.composed.Store(next)
	a.warnOfStrays(added)
	a.watchExtensions(added)
	return NewLease(func() { a.remove(added, undo) }), nil
}

// namesWith returns the names of the tools that the agent may use once it has more.
func (a *Agent) namesWith(next *composition, more []ownedTool) []string {
	names := slices.Clone(a.allTools().names)
	for _, t := range more {
		if t.Tool == nil {
			continue // addTools reports it
		}
		if name := t.Declaration().Name; a.inScope(name) && next.narrowed.allows(t.owner, name) {
			names = append(names, name)
		}
	}
	return names
}

// remove removes extensions that were added: what they brought first, and then the
// registration.
func (a *Agent) remove(gone []*attached, undo []func() error) {
	a.adding.Lock()
	defer a.adding.Unlock()
	if a.closed.Load() { // Close has unregistered them
		return
	}
	a.composed.Store(a.composed.Load().without(gone))
	var problems []error
	for _, f := range slices.Backward(undo) {
		problems = append(problems, f())
	}
	a.endWatching(gone)
	if err := errors.Join(problems...); err != nil {
		a.opts.Logger.Warn("an extension could not be removed as a whole", "agent", a.opts.Name, "error", err)
	}
}

// endWatching ends the watching of some extensions. They still get the events so far.
func (a *Agent) endWatching(gone []*attached) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watching = slices.DeleteFunc(a.watching, func(w *extensionWatch) bool {
		if !slices.Contains(gone, w.of) {
			return false
		}
		w.end()
		return true
	})
}

// Intercept adds interceptors, inside those that the agent has. Calls that begin later go
// through them. Closing the lease removes them.
func (a *Agent) Intercept(interceptors ...Interceptor) (*Lease, error) {
	added := make([]*Interceptor, 0, len(interceptors))
	for i, in := range interceptors {
		if in.Tool == "" || in.Name == "" {
			return nil, fmt.Errorf("interceptor %d: it needs a name, and a tool or \"*\"", i+1)
		}
		added = append(added, &in)
	}
	a.changing.Lock()
	defer a.changing.Unlock()
	next := slices.Concat(*a.intercepts.Load(), added)
	a.intercepts.Store(&next)
	return NewLease(func() {
		a.changing.Lock()
		defer a.changing.Unlock()
		left := slices.DeleteFunc(slices.Clone(*a.intercepts.Load()), func(in *Interceptor) bool { return slices.Contains(added, in) })
		a.intercepts.Store(&left)
	}), nil
}
