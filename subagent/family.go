package subagent

import (
	"context"
	"errors"
	"sync"

	"github.com/belay-run/belay"
)

// family knows the agents that use an extension, and the makers of its children.
type family struct {
	mu      sync.Mutex
	parents map[string]bool // ids of the agents that use the extension
	making  map[string]int  // names of children that are being made, with their number
	makers  map[*maker]bool // makers that have an agent for the extension
}

// Register records an agent that uses the extension.
func (e *Extension) Register(_ context.Context, agent belay.AgentConfig) error {
	f := &e.family
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.making[agent.Name] > 0 { // a child that also uses the extension must not keep it open
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

// Close closes the agents that factories of [Agent] have made for the extension. While
// another agent still uses the extension, Close does nothing: the made agents are closed
// together with the last agent that uses the extension. A later task makes new agents.
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

// notes records a maker that has an agent for the extension.
func (e *Extension) notes(m *maker) {
	e.family.mu.Lock()
	defer e.family.mu.Unlock()
	if e.family.makers == nil {
		e.family.makers = make(map[*maker]bool)
	}
	e.family.makers[m] = true
}

// newChild makes a child. While it does, Register ignores the child. e may be nil.
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
