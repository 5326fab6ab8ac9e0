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
// when it is not found any more.
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
	r.put(name, a)
	return a, nil
}

// Replace makes an agent and puts it in the place of the one of its name, if there is one.
// The extensions of the old one are told that it is gone before those of the new one are
// told of that; if the new one cannot be made, the old one stays. Then the old one is
// closed, which waits for its turns; extensions that both have stay open.
func (r *Registry) Replace(ctx context.Context, model Model, opts *Options) (*Agent, error) {
	name := nameOf(opts)
	release, err := r.hold(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("replace agent %q: %w", name, err)
	}
	defer release()
	old, had := r.Lookup(name)
	a, err := makeAgent(ctx, model, opts)
	if err != nil {
		return nil, fmt.Errorf("replace agent %q: %w", name, err)
	}
	if had {
		if err := old.unregister(ctx, old.opts.Extensions); err != nil {
			return nil, fmt.Errorf("replace agent %q: %w", name, errors.Join(err, old.register(context.WithoutCancel(ctx))))
		}
	}
	if err := a.register(ctx); err != nil {
		problems := []error{err}
		if had {
			problems = append(problems, old.register(context.WithoutCancel(ctx)))
		}
		return nil, fmt.Errorf("replace agent %q: %w", name, errors.Join(problems...))
	}
	a.watchExtensions()
	r.put(name, a)
	if had {
		old.spare = a.opts.Extensions
		if err := old.Close(ctx); err != nil {
			return a, fmt.Errorf("replace agent %q: the new one is in its place: %w", name, err)
		}
	}
	return a, nil
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
	r.put(name, nil)
	if err := a.Close(ctx); err != nil {
		return fmt.Errorf("remove agent %q: %w", name, err)
	}
	return nil
}

// put has a name mean an agent, or nothing.
func (r *Registry) put(name string, a *Agent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a == nil {
		delete(r.agents, name)
		return
	}
	r.agents[name] = a
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
