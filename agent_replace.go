package belay

import (
	"context"
	"errors"
	"fmt"
)

// Replace makes a new agent that takes the place of this one, and closes this one.
//
// This agent takes no new turns: ErrClosed. When its running turns have ended, Unregister of
// its extensions is called, and then Register of the new agent's extensions. Extensions that
// both agents have stay open.
//
// If the new agent cannot be made, or ctx ends before the running turns do, Replace returns
// an error and this agent can be used as before. If its own extensions refuse it then, it
// is closed.
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
	a.spareExtensions(next.opts.Extensions)
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
		return next, fmt.Errorf("replace agent %q: the new agent is in use, but closing the old one failed: %w", a.opts.Name, err)
	}
	return next, nil
}

// leave makes the agent refuse turns and extensions. It reports false if it does so already.
func (a *Agent) leave() bool {
	a.changing.Lock()
	defer a.changing.Unlock()
	return a.leaving.CompareAndSwap(false, true)
}

// putBack makes an agent usable again that could not be replaced.
func (a *Agent) putBack(ctx context.Context) error {
	err := a.registerAll(ctx)
	switch {
	case errors.Is(err, ErrClosed):
		return errors.Join(errors.New("the old agent was closed meanwhile"), a.reclaimExtensions(ctx))
	case err != nil:
		err = fmt.Errorf("the old agent cannot be used again and is closed: %w", err)
		return errors.Join(err, a.reclaimExtensions(ctx), a.Close(ctx))
	}
	a.leaving.Store(false)
	return a.reclaimExtensions(ctx)
}
