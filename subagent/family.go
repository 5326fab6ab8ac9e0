package subagent

import (
	"context"
	"errors"
	"sync"

	"github.com/belay-run/belay"
)

// family is whom an extension serves, and what was made for it.
type family struct {
	mu      sync.Mutex
	parents map[string]bool // the agents that have it, by id
	making  map[string]int  // the names of children that are being made
	makers  map[*maker]bool // which have agents for it
}

// Register is told of an agent that has the extension.
func (e *Extension) Register(_ context.Context, agent belay.AgentConfig) error {
	f := &e.family
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.making[agent.Name] > 0 { // a child that has it too is closed with it, and not the other way round
		return nil
	}
	if f.parents == nil {
		f.parents = make(map[string]bool)
	}
	f.parents[agent.ID] = true
	return nil
}

// Unregister is told that such an agent is gone.
func (e *Extension) Unregister(_ context.Context, agent belay.AgentConfig) error {
	e.family.mu.Lock()
	defer e.family.mu.Unlock()
	delete(e.family.parents, agent.ID)
	return nil
}

// Close closes the agents that the factories of [Agent] made for the extension. As long as
// an agent has the extension it does nothing: the last one's end closes them. A task that
// comes later has them made anew.
func (e *Extension) Close(ctx context.Context) error {
	f := &e.family
	f.mu.Lock()
	if len(f.parents) > 0 {
		f.mu.Unlock()
		return nil
	}
	makers := f.makers
	f.makers = nil
	f.mu.Unlock()
	var problems []error
	for m := range makers {
		problems = append(problems, m.disown(ctx, e))
	}
	return errors.Join(problems...)
}

// notes remembers a maker that has an agent for the extension.
func (e *Extension) notes(m *maker) {
	e.family.mu.Lock()
	defer e.family.mu.Unlock()
	if e.family.makers == nil {
		e.family.makers = make(map[*maker]bool)
	}
	e.family.makers[m] = true
}

// newChild makes a child. The extension may be nil.
func (e *Extension) newChild(model belay.Model, opts *belay.Options) (*belay.Agent, error) {
	if e != nil {
		e.family.count(opts.Name, 1)
		defer e.family.count(opts.Name, -1)
	}
	return belay.New(model, opts)
}

func (f *family) count(name string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.making == nil {
		f.making = make(map[string]int)
	}
	if f.making[name] += n; f.making[name] == 0 {
		delete(f.making, name)
	}
}
