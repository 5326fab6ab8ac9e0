package subagent

import (
	"context"
	"errors"
	"sync"

	"github.com/belay-run/belay"
)

// family holds the agents that use an extension, and the agents made for it.
type family struct {
	mu      sync.Mutex
	parents map[string]bool // the agents that use it, by id
	making  map[string]int  // the names of children that are being made
	makers  map[*maker]bool // that have agents for it
}

// Register records an agent that uses the extension.
func (e *Extension) Register(_ context.Context, agent belay.AgentConfig) error {
	f := &e.family
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.making[agent.Name] > 0 { // a child that also uses it does not keep it open
		return nil
	}
	if f.parents == nil {
		f.parents = make(map[string]bool)
	}
	f.parents[agent.ID] = true
	return nil
}

// Unregister removes a closed agent.
func (e *Extension) Unregister(_ context.Context, agent belay.AgentConfig) error {
	e.family.mu.Lock()
	defer e.family.mu.Unlock()
	delete(e.family.parents, agent.ID)
	return nil
}

// Close closes the agents that the factories of [Agent] made for the extension. While an
// agent uses the extension, it does nothing: closing the last agent closes them. A later
// task makes new ones.
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
