package belay

import (
	"context"
	"errors"
	"fmt"
)

// Replace makes a new agent and closes this one.
//
// As soon as you call Replace, new turns of this agent fail with ErrClosed. Replace waits
// until the running turns have ended. Then it calls Unregister of this agent's extensions
// and Register of the new agent's extensions. Extensions that both agents have stay open.
//
// Replace returns an error if the new agent cannot be made, or if ctx ends before the
// running turns do. You can then use this agent as before, except if Replace cannot
// register its extensions again: then Replace closes this agent. If only closing this agent
// fails, Replace returns the new agent and an error.
func (a *Agent) Replace(ctx context.Context, model Model, opts *Options) (*Agent, error) {
	switch {
	case a.closed.Load():
		return nil, fmt.Errorf("replace agent %q: %w", a.opts.Name, ErrClosed)
	case !a.leave():
		return nil, fmt.Errorf("replace agent %q: it is already being replaced", a.opts.Name)
	}
	next, err := makeAgent(ctx, model, opts)
	if err != nil {
		a.leaving.Store(false)
		return nil, fmt.Errorf("replace agent %q: %w", a.opts.Name, err)
	}
	if !a.spareExtensions(next.opts.Extensions) {
		return nil, fmt.Errorf("replace agent %q: %w", a.opts.Name, ErrClosed)
	}
	if err = a.drain(ctx); err == nil {
		err = a.unregister(ctx, a.composed.Load().extensions)
	}
	if err == nil {
		err = next.registerAll(ctx)
	}
	if err != nil {
		err = errors.Join(err, a.putBack(context.WithoutCancel(ctx)))
		return nil, fmt.Errorf("replace agent %q: %w", a.opts.Name, err)
	}
	next.watchExtensions(next.composed.Load().extensions)
	if err := a.Close(ctx); err != nil {
		return next, fmt.Errorf("replace agent %q: the new agent is ready, but closing the old agent failed: %w", a.opts.Name, err)
	}
	return next, nil
}

// leave makes the agent refuse new turns and new extensions. It reports false if the agent
// is already being replaced.
func (a *Agent) leave() bool {
	a.changing.Lock()
	defer a.changing.Unlock()
	return a.leaving.CompareAndSwap(false, true)
}

// putBack makes an agent usable again after Replace has failed.
func (a *Agent) putBack(ctx context.Context) error {
	err := a.registerAll(ctx)
	switch {
	case errors.Is(err, ErrClosed):
		return errors.Join(errors.New("the old agent was closed while it was being replaced"), a.reclaimExtensions(ctx))
	case err != nil:
		err = fmt.Errorf("the old agent could not be registered again and was closed: %w", err)
		return errors.Join(err, a.reclaimExtensions(ctx), a.Close(ctx))
	}
	a.leaving.Store(false)
	return a.reclaimExtensions(ctx)
}
