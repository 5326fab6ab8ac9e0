package subagent

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/belay-run/belay"
)

// The names of the tools.
const (
	InvokeTool   = "invoke_subagent"
	DelegateTool = "delegate"
)

// Options are the settings of [New]. A nil *Options is valid.
type Options struct {
	// Subagents are the first subagents. You can add more with [Extension.Add]. Defaults
	// to none.
	Subagents []Subagent
	// Delegate adds the tool delegate, which takes a list of tasks. Defaults to false:
	// the model can also call invoke_subagent several times in one message.
	Delegate bool
	// Budget limits the list of subagents in the description of invoke_subagent, in
	// tokens of four characters. The list first has all names, and then descriptions
	// while they fit. Defaults to 2 % of the model's context window, but at least 2,000.
	Budget int
	// Parallel is how many tasks of one delegate call run at the same time. Defaults to
	// 16.
	Parallel int
}

// Extension gives subagents to an agent. Make one with [New], and put it into the agent's
// Options.Extensions.
type Extension struct {
	opts    Options
	now     atomic.Pointer[set]
	adding  sync.Mutex
	queue   queue
	waiting parked
	family  family
}

var (
	_ belay.StepToolExtension = (*Extension)(nil)
	_ belay.ResourceExtension = (*Extension)(nil)
	_ belay.RegisterExtension = (*Extension)(nil)
	_ belay.CloseExtension    = (*Extension)(nil)
)

// New makes an extension with the given settings.
func New(opts *Options) (*Extension, error) {
	e := new(Extension)
	if opts != nil {
		e.opts = *opts
	}
	if e.opts.Parallel == 0 {
		e.opts.Parallel = 16
	}
	if e.opts.Parallel < 0 {
		return nil, errors.New("subagents: parallel must not be negative")
	}
	if e.opts.Budget < 0 {
		return nil, errors.New("subagents: budget must not be negative")
	}
	e.now.Store(&set{})
	if _, err := e.Add(e.opts.Subagents...); err != nil {
		return nil, fmt.Errorf("subagents: %w", err)
	}
	return e, nil
}

// Name returns "subagents". Errors use it.
func (e *Extension) Name() string { return "subagents" }

// Add adds all given subagents. On an error it adds none. Agents see the subagents in
// their next model request. Closing the lease removes them, but running tasks continue.
func (e *Extension) Add(subagents ...Subagent) (*belay.Lease, error) {
	e.adding.Lock()
	defer e.adding.Unlock()
	all := slices.Clone(e.now.Load().all)
	added := make([]*Subagent, 0, len(subagents))
	var problems []error
	for i := range subagents {
		s := subagents[i]
		s.Agents = slices.Clone(s.Agents)
		switch err := s.sound(); {
		case err != nil:
			problems = append(problems, err)
		case slices.ContainsFunc(all, func(o *Subagent) bool { return o.Name == s.Name }):
			problems = append(problems, fmt.Errorf("subagent %q: the name is already used: choose another name", s.Name))
		default:
			added = append(added, &s)
			all = append(all, &s)
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	e.now.Store(newSet(all))
	return belay.NewLease(func() { e.remove(added) }), nil
}

func (e *Extension) remove(gone []*Subagent) {
	e.adding.Lock()
	defer e.adding.Unlock()
	e.now.Store(newSet(slices.DeleteFunc(slices.Clone(e.now.Load().all), func(s *Subagent) bool { return slices.Contains(gone, s) })))
}

// List returns all subagents, sorted by name.
func (e *Extension) List() []Subagent {
	now := e.now.Load()
	list := make([]Subagent, len(now.all))
	for i, s := range now.all {
		list[i] = s.copy()
	}
	return list
}

// Lookup returns the subagent with the given name.
func (e *Extension) Lookup(name string) (Subagent, bool) {
	for _, s := range e.now.Load().all {
		if s.Name == name {
			return s.copy(), true
		}
	}
	return Subagent{}, false
}

func (s *Subagent) copy() Subagent {
	c := *s
	c.Agents = slices.Clone(s.Agents)
	return c
}
