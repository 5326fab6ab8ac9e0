package belay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Registry is agents by name. The zero value is empty and ready for use. It is safe for
// concurrent use.
//
// An agent is found once its extensions know of it, and they are told that it is gone
// when it is not found any more. One that is closed is found no more, whoever closes it.
type Registry struct {
	mu     sync.Mutex
	agents map[string]*Agent
	busy   map[string]chan struct{} // names that are being changed
}

// ErrExists is the error of adding an agent whose name another has.
var ErrExists = errors.New("there is an agent of that name")

// hold waits until nobody else changes a name.
func (r *Registry) hold(ctx context.Context, name string) (release func(), err error) {
	for {
		r.mu.Lock()
		if r.agents == nil {
			r.agents, r.busy = make(map[string]*Agent), make(map[string]chan struct{})
		}
		wait, taken := r.busy[name]
		if !taken {
			done := make(chan struct{})
			r.busy[name] = done
			r.mu.Unlock()
			return func() {
				r.mu.Lock()
				defer r.mu.Unlock()
				delete(r.busy, name)
				close(done)
			}, nil
		}
		r.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Add makes an agent, as [New] does, and adds it. ErrExists: its name is taken.
func (r *Registry) Add(ctx context.Context, model Model, opts *Options) (*Agent, error) {
	name := nameOf(opts)
	release, err := r.hold(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("add agent %q: %w", name, err)
	}
	defer release()
	if _, ok := r.Lookup(name); ok {
		return nil, fmt.Errorf("add agent %q: %w", name, ErrExists)
	}
	a, err := newAgent(ctx, model, opts)
	if err != nil {
		return nil, fmt.Errorf("add agent %q: %w", name, err)
	}
	a.home = r
	r.put(a)
	return a, nil
}

// Replace makes an agent and puts it in the place of the one of its name, if there is one.
// Nobody finds the name until that is done: the old one takes no more turns, those under
// way are waited for, its extensions are told that it is gone, and then those of the new
// one are told of that. The old one is closed; extensions that both have stay open.
//
// If the new one cannot be made, or ctx ends before the old one's turns, the old one is
// put back. If its own extensions do not take it back, or somebody closed it meanwhile,
// there is no agent of that name.
func (r *Registry) Replace(ctx context.Context, model Model, opts *Options) (*Agent, error) {
	name := nameOf(opts)
	release, err := r.hold(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("replace agent %q: %w", name, err)
	}
	defer release()
	a, err := makeAgent(ctx, model, opts)
	if err != nil {
		return nil, fmt.Errorf("replace agent %q: %w", name, err)
	}
	a.home = r
	old, had := r.Lookup(name)
	if had {
		err = r.withdraw(ctx, old, a)
	}
	if err == nil {
		err = a.register(ctx)
	}
	if err != nil {
		if had {
			err = errors.Join(err, r.putBack(context.WithoutCancel(ctx), old))
		}
		return nil, fmt.Errorf("replace agent %q: %w", name, err)
	}
	a.watchExtensions()
	r.put(a)
	if had {
		if err := old.Close(ctx); err != nil {
			return a, fmt.Errorf("replace agent %q: the new one is in its place: %w", name, err)
		}
	}
	return a, nil
}

// withdraw takes an agent out that another is to replace.
func (r *Registry) withdraw(ctx context.Context, old, replacement *Agent) error {
	old.spareExtensions(replacement.opts.Extensions)
	r.drop(old)
	if err := old.drain(ctx); err != nil {
		return err
	}
	return old.unregister(ctx)
}

// putBack puts back an agent that could not be replaced.
func (r *Registry) putBack(ctx context.Context, old *Agent) error {
	err := old.register(ctx)
	switch {
	case errors.Is(err, ErrClosed):
		return errors.Join(errors.New("the old one was closed meanwhile"), old.reclaimExtensions(ctx))
	case err != nil:
		err = fmt.Errorf("the old one cannot be put back, and is closed: %w", err)
		return errors.Join(err, old.reclaimExtensions(ctx), old.Close(ctx))
	}
	old.leaving.Store(false)
	r.put(old)
	return old.reclaimExtensions(ctx)
}

// Remove takes an agent out and closes it, which waits for its turns. ErrNotFound: there
// is none of that name.
func (r *Registry) Remove(ctx context.Context, name string) error {
	release, err := r.hold(ctx, name)
	if err != nil {
		return fmt.Errorf("remove agent %q: %w", name, err)
	}
	defer release()
	a, ok := r.Lookup(name)
	if !ok {
		return fmt.Errorf("remove agent %q: %w", name, ErrNotFound)
	}
	r.drop(a)
	if err := a.Close(ctx); err != nil {
		return fmt.Errorf("remove agent %q: %w", name, err)
	}
	return nil
}

// put has an agent found under its name, unless it is closed.
func (r *Registry) put(a *Agent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !a.closed.Load() {
		r.agents[a.opts.Name] = a
	}
}

// drop has an agent found no more.
func (r *Registry) drop(a *Agent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.agents[a.opts.Name] == a {
		delete(r.agents, a.opts.Name)
	}
}

// Lookup finds an agent by its name.
func (r *Registry) Lookup(name string) (*Agent, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.agents[name]
	return a, ok
}

// Names lists the agents, in order.
func (r *Registry) Names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.agents))
}

// Close removes all agents.
func (r *Registry) Close(ctx context.Context) error {
	var problems []error
	for _, name := range r.Names() {
		if err := r.Remove(ctx, name); !errors.Is(err, ErrNotFound) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// defaultName is that of an agent without one.
const defaultName = "main"

// nameOf is the name that an agent with these options has.
func nameOf(opts *Options) string {
	if opts == nil || opts.Name == "" {
		return defaultName
	}
	return opts.Name
}
