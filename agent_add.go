package belay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/belay-run/belay/hook"
)

// Add adds extensions to the agent, all of them or none. A running turn uses their tools,
// gates and tool.post hooks from its next step on. Everything else applies from the next
// turn on, because the prompt of a running turn is already built, and because an observer
// must see both events of a pair, such as subagent.start and subagent.stop.
//
// Add fails if the Build method of an extension changes the configuration. Use
// [Agent.Replace] for such an extension.
//
// Closing the lease removes the extensions, ends their Watch methods and calls their
// Unregister methods. Running calls of their tools continue, and closing the lease does
// not wait for them. It also does not call the Close methods of the extensions. It fails
// and changes nothing if the order of other hooks refers to hooks of the extensions:
// remove the other hooks first. [Agent.Close] closes only extensions that were not
// removed.
func (a *Agent) Add(ctx context.Context, extensions ...Extension) (*Lease, error) {
	added, err := a.add(ctx, extensions)
	if err != nil {
		return nil, fmt.Errorf("add extensions: %w", err)
	}
	a.warnOfStrays(added.extensions)
	return newLease(func() error { return a.remove(added) }), nil
}

// addition is everything that extensions added to an agent after New.
type addition struct {
	extensions []*attached
	tools      []*boundTool
	directives []Directive
	defined    *Lease
	hooks      *hook.Lease
}

// add adds extensions. It calls Register before it publishes anything. Then it publishes
// the gates first and the tools last, so that no tool runs without its gates.
func (a *Agent) add(ctx context.Context, extensions []Extension) (_ *addition, err error) {
	before := a.composed.Load()
	next, err := before.with(ctx, extensions)
	if err != nil {
		return nil, err
	}
	if next.config.Instructions != before.config.Instructions || !maps.EqualFunc(next.config.Resources, before.config.Resources, slices.Equal) {
		return nil, errors.New("the Build method of an extension changed the instructions or the resources: only New and Replace allow this")
	}
	add := &addition{extensions: next.extensions[len(before.extensions):]}
	brought, err := gather(add.extensions)
	if err != nil {
		return nil, err
	}
	if add.tools, err = a.bindAll(next, brought.tools); err != nil {
		return nil, err
	}
	withTools := newToolset(slices.Concat(a.tools.Load().tools, add.tools))
	if err := a.checkStepTools(withTools, next); err != nil {
		return nil, err
	}
	undo := []func() error{func() error { return a.unregister(context.WithoutCancel(ctx), add.extensions) }}
	defer func() {
		if err != nil {
			for _, f := range slices.Backward(undo) {
				err = errors.Join(err, f())
			}
		}
	}()
	if err := a.register(ctx, next, add.extensions, withTools.names); err != nil {
		return nil, err
	}
	if add.hooks, err = a.hooks.Install(brought.hooks...); err != nil {
		return nil, err
	}
	undo = append(undo, add.hooks.Close)
	add.directives = brought.directives
	if add.defined, err = a.Define(add.directives...); err != nil {
		return nil, err
	}
	undo = append(undo, add.defined.Close)
	return add, a.publish(add)
}

// publish makes the extensions and their tools visible. It fails if the agent was closed
// or is being replaced, or if a tool's name is taken.
func (a *Agent) publish(add *addition) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	if a.closed.Load() || a.leaving.Load() {
		return ErrClosed
	}
	next, err := a.composed.Load().plus(add.extensions)
	if err != nil {
		return err
	}
	tools, err := a.withTools(add.tools)
	if err != nil {
		return err
	}
	a.composed.Store(next)
	a.tools.Store(tools)
	a.watchExtensions(add.extensions)
	return nil
}

// remove removes extensions that were added. It removes the tools first and the gates last.
// If the hooks cannot be removed, remove adds everything else again.
func (a *Agent) remove(gone *addition) error {
	a.changing.Lock()
	before, tools := a.composed.Load(), a.tools.Load()
	a.composed.Store(before.without(gone.extensions))
	a.tools.Store(tools.without(gone.tools))
	a.changing.Unlock()
	err := errors.Join(gone.defined.Close(), gone.hooks.Close())
	if err != nil {
		gone.defined, _ = a.Define(gone.directives...) // fails if another directive has taken the name meanwhile
		if gone.defined == nil {
			gone.defined = NewLease(func() {})
		}
		return errors.Join(err, a.publish(gone))
	}
	a.endWatching(gone.extensions)
	ctx, cancel := context.WithTimeout(context.Background(), a.opts.Limits.End)
	defer cancel()
	return a.unregister(ctx, gone.extensions)
}

// endWatching ends the Watch method of the extensions. Before it ends, each Watch gets
// all events up to now.
func (a *Agent) endWatching(gone []*attached) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.watching {
		if slices.Contains(gone, w.of) {
			w.end()
		}
	}
}

// Intercept adds interceptors. They apply to calls that begin later. They run inside the
// interceptors that the agent already has. Closing the lease removes them.
func (a *Agent) Intercept(interceptors ...Interceptor) (*Lease, error) {
	added := make([]*Interceptor, 0, len(interceptors))
	for i, in := range interceptors {
		if in.Tool == "" || in.Name == "" {
			return nil, fmt.Errorf("interceptor %d: Name or Tool is empty: set both (Tool is the name of a tool, or \"*\" for all tools)", i+1)
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
