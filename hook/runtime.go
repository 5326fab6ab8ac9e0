package hook

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay/internal/near"
)

// RuntimeOptions are a runtime's settings. A nil *RuntimeOptions is valid.
type RuntimeOptions struct {
	// Journal keeps the records of runs. Defaults to a MemoryJournal of 4,096 records.
	Journal Journal
	// Queue stores background work. Defaults to none: without a queue, Install rejects
	// background subscriptions, and an answer that schedules a job fails.
	Queue Queue
	// Grants returns what an origin may contribute. Defaults to DefaultGrants.
	Grants func(Origin) Capability
	// Recall finds the JSON form of the input of background work, by the input's reference.
	// If it returns ErrNotFound, the input is gone and the work fails. After any other
	// error the work is retried. Defaults to the queue, if it is an InputQueue. With
	// neither, only the process that queued the work has the input. In any other process
	// the work fails with job.input_gone.
	Recall func(ctx context.Context, phase, reference string, scope Scope) (json.RawMessage, error)
	// Limits limit merged contributions. A zero field means its default: see [Limits].
	Limits Limits
	// Abandoned is the number of abandoned runs that may be alive before a subscription is
	// quarantined: its handler is then not started. Defaults to 8.
	Abandoned int
	// InFlight is the maximum number of fire_and_record runs at a time. Defaults to 256.
	InFlight int
	// Clock replaces the machine's clock in tests. Defaults to the machine's clock.
	Clock Clock
	// Failed is called for each failed run that nothing waits for: a fire_and_record run,
	// or background work that is not retried. An Outcome reports all other failures. An
	// agent also calls Failed for failures at session.end, because no turn reports them.
	// Failed is called from several goroutines and must not block. Defaults to none.
	Failed func(Scope, Problem)
	// WrapJob is called around each attempt of a job. It calls next once, with ctx or a
	// context derived from it, and returns what next returned. Defaults to none.
	WrapJob func(ctx context.Context, job Job, next func(context.Context) Run) Run
	// Logger gets the errors of handlers and the stacks of panics, which records do not
	// contain. Defaults to a logger that discards them.
	Logger *slog.Logger
}

// Runtime orders, limits, records and explains the subscriptions of a set of phases. Make
// one with [NewRuntime]. A Runtime is safe for concurrent use.
type Runtime struct {
	heirs  atomic.Pointer[heirs] // see Snapshot.Inherit
	opts   RuntimeOptions
	clock  Clock
	base   time.Time
	prefix string // of run ids
	seq    atomic.Uint64
	drift  atomic.Int64 // offset of the time of day from the monotonic clock
	table  slotTable
	phases []AnyPhase

	// changing serialises Install and Close. It is not locked while handlers run.
	changing sync.Mutex
	members  map[*phaseCore]*members // guarded by changing
	jobs     map[string]*jobEntry    // guarded by holding

	// holding guards the generations. It is locked only for a few instructions.
	holding sync.Mutex
	current *generation
	alive   map[*generation]struct{}

	firing  atomic.Int64
	late    lateLog
	settled tally      // running fire_and_record runs
	held    heldInputs // inputs of queued work
	chunks  sync.Pool
}

// installed is one subscription in one runtime.
type installed struct {
	sub  *subscription
	caps Capability
	// These copies of options are for ordering and compiling. Following pointers for ten
	// thousand members would take most of the time.
	rewrites   bool
	overlaps   bool
	background bool
	disabled   bool
	shadow     bool
	plain      bool // matches everything and runs inline without a timeout
	picks      bool // has a Match
	evident    bool // needs a started record before it runs: see evidence
	priority   int
	id         string
	handler    handler

	abandoned *atomic.Int32 // counts abandoned runs that are still alive; points to the field alive, here or in the original
	alive     atomic.Int32  // not used if the subscription was inherited
	home      *Runtime      // the runtime where it was installed; nil if it was not inherited
	of        *subscription // the original subscription; nil if it was not inherited
}

// NewRuntime makes a runtime that knows the given phases.
func NewRuntime(phases []AnyPhase, opts *RuntimeOptions) (*Runtime, error) {
	rt := &Runtime{members: make(map[*phaseCore]*members), jobs: make(map[string]*jobEntry)}
	if opts != nil {
		rt.opts = *opts
	}
	if rt.opts.Journal == nil {
		rt.opts.Journal = NewMemoryJournal(4096)
	}
	if rt.opts.Grants == nil {
		rt.opts.Grants = DefaultGrants
	}
	if rt.opts.Abandoned == 0 {
		rt.opts.Abandoned = 8
	}
	if rt.opts.InFlight == 0 {
		rt.opts.InFlight = 256
	}
	if rt.opts.Logger == nil {
		rt.opts.Logger = slog.New(slog.DiscardHandler)
	}
	rt.opts.Limits = rt.opts.Limits.defaults()
	rt.clock = rt.opts.Clock
	rt.base = time.Now()
	if rt.clock != nil {
		rt.base = rt.clock.Now()
	}
	rt.prefix = strings.ToLower(rand.Text()[:10]) + "-"
	rt.phases = slices.Clone(phases)
	cores := make([]*phaseCore, 0, len(phases))
	seen := make(map[string]bool)
	for i, p := range phases {
		if p == nil {
			return nil, fmt.Errorf("new runtime: phase %d is nil", i)
		}
		c := p.core()
		if faults := c.faults(); len(faults) > 0 {
			return nil, fmt.Errorf("new runtime: phase %q: %s", c.name, strings.Join(faults, "; "))
		}
		if seen[c.name] {
			return nil, fmt.Errorf("new runtime: there are two phases called %q", c.name)
		}
		seen[c.name] = true
		cores = append(cores, c)
		rt.members[c] = new(members)
	}
	rt.table = newSlotTable(cores)
	rt.current = &generation{
		table: rt.table, slots: make([]*phasePlan, rt.table.size()), idle: make(map[*phaseCore]*phasePlan), drained: make(chan struct{}),
	}
	rt.alive = map[*generation]struct{}{rt.current: {}}
	return rt, nil
}

// Limits returns the limits of merged contributions.
func (rt *Runtime) Limits() Limits { return rt.opts.Limits }

// Phases returns the phases that the runtime knows.
func (rt *Runtime) Phases() []AnyPhase { return slices.Clone(rt.phases) }

func (rt *Runtime) knows(c *phaseCore) bool { _, ok := rt.members[c]; return ok }

func (rt *Runtime) phaseNames() []string {
	names := make([]string, len(rt.phases))
	for i, p := range rt.phases {
		names[i] = p.Name()
	}
	return names
}

// phase finds a phase by its wire name.
func (rt *Runtime) phase(name string) (*phaseCore, error) {
	for _, p := range rt.phases {
		if p.Name() == name {
			return p.core(), nil
		}
	}
	return nil, fmt.Errorf("%w: phase %q%s", ErrNotFound, name, near.Hint(name, rt.phaseNames()))
}

// Install adds all of the subscriptions or none. Closing the lease removes them. Running
// turns keep their snapshot. The error is an *InstallError that names every wrong
// subscription and field.
func (rt *Runtime) Install(subs ...Subscription) (*Lease, error) {
	rt.changing.Lock()
	defer rt.changing.Unlock()
	return rt.change(nil, subs)
}

// Remove removes the subscriptions with the given ids from every phase. Running turns keep
// their snapshot, so that a turn never loses a gate. The leases of removed subscriptions
// can still be closed.
//
// Remove removes all of the subscriptions or none. It removes none and returns an error if
// an id is unknown, or if another subscription names a removed one in After or Before.
func (rt *Runtime) Remove(ids ...string) error {
	rt.changing.Lock()
	defer rt.changing.Unlock()
	var remove []*installed
	var problems []error
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		found := false
		for _, phase := range rt.phases {
			if e := rt.members[phase.core()].find(id); e != nil {
				remove = append(remove, e)
				found = true
			}
		}
		if !found {
			problems = append(problems, fmt.Errorf("there is no subscription %q", id))
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("remove: %w", errors.Join(problems...))
	}
	if _, err := rt.change(remove, nil); err != nil {
		return changeError("remove", err)
	}
	return nil
}

// change removes and adds subscriptions in one step. It skips subscriptions in remove that
// are no longer installed. The caller holds rt.changing.
func (rt *Runtime) change(remove []*installed, add []Subscription) (*Lease, error) {
	touched := make(map[*phaseCore]*members)
	touch := func(c *phaseCore) *members {
		if touched[c] == nil {
			touched[c] = rt.members[c].clone(len(add))
		}
		return touched[c]
	}
	remove = slices.DeleteFunc(slices.Clone(remove), func(e *installed) bool { return rt.members[e.sub.phase].find(e.sub.id) != e })
	for _, e := range remove {
		touch(e.sub.phase).remove(e.sub.id)
	}
	lease := &Lease{rt: rt, entries: make([]*installed, 0, len(add))}
	var problems []error
	batch := make([]installed, len(add)) // one allocation: a lease adds and removes its entries together
	for i, sub := range add {
		e := &batch[i]
		found, ok := rt.admit(sub, e)
		problems = append(problems, found...)
		if !ok {
			continue
		}
		all := touch(e.sub.phase)
		if other := all.find(e.sub.id); other != nil {
			problems = append(problems, &OptionError{
				Subscription: e.sub.id, Phase: e.sub.phase.name, Origin: e.sub.opts.Origin, Field: "id",
				Reason: fmt.Sprintf("another subscription on this phase already has this id: its origin is %s", other.sub.opts.Origin),
			})
			continue
		}
		all.add(e)
		lease.entries = append(lease.entries, e)
	}
	problems = append(problems, rt.inUse(remove, touched)...)
	if len(problems) > 0 && len(add) == 0 {
		return nil, &InstallError{problems}
	}
	plans, found := rt.resolve(touched)
	if problems = append(problems, found...); len(problems) > 0 {
		return nil, &InstallError{problems}
	}
	for _, p := range plans {
		p.compile()
	}
	maps.Copy(rt.members, touched)
	lease.from = rt.publish(plans)
	return lease, nil
}

// admit checks one subscription by itself and fills in e. If a subscription with problems
// can still be ordered, admit reports ok, so that the caller finds the other problems too.
func (rt *Runtime) admit(sub Subscription, e *installed) (problems []error, ok bool) {
	if sub.s == nil {
		return []error{&OptionError{Field: "phase", Reason: "the subscription is empty: make it with Phase.On"}}, false
	}
	problems = sub.s.problems(rt)
	if len(problems) > 0 && (!rt.knows(sub.s.phase) || !validID(sub.s.id)) {
		return problems, false
	}
	o := &sub.s.opts
	e.sub, e.id, e.handler, e.caps = sub.s, sub.s.id, sub.s.handler, sub.s.effective(rt)
	e.rewrites, e.overlaps, e.background = sub.s.rewrites(), sub.s.overlaps(), o.Execution == Background
	e.disabled, e.shadow, e.priority, e.picks = o.Disabled, o.Shadow, o.Priority, o.Match.picks()
	e.abandoned = &e.alive
	e.evident = sub.s.evident()
	e.plain = !e.picks && !e.evident && o.Execution == Blocking && o.Timeout == 0
	return problems, true
}

// inUse returns an error for each removed member that a remaining member names in After or
// Before.
func (rt *Runtime) inUse(remove []*installed, touched map[*phaseCore]*members) []error {
	type key struct {
		phase *phaseCore
		id    string
	}
	gone := make(map[key][]string, len(remove)) // the removed members, each with the members that need it
	phases := make(map[*phaseCore]bool)
	for _, e := range remove {
		if touched[e.sub.phase].find(e.sub.id) == nil { // otherwise the same id is installed again
			gone[key{e.sub.phase, e.sub.id}] = nil
			phases[e.sub.phase] = true
		}
	}
	for phase := range phases {
		for _, e := range touched[phase].list {
			if e.sub.opts.Disabled {
				continue
			}
			for _, dep := range slices.Concat(e.sub.opts.After, e.sub.opts.Before) {
				if needed, ok := gone[key{phase, dep}]; ok && !slices.Contains(needed, e.sub.id) {
					gone[key{phase, dep}] = append(needed, e.sub.id)
				}
			}
		}
	}
	var problems []error
	for _, e := range remove {
		if needed := gone[key{e.sub.phase, e.sub.id}]; len(needed) > 0 {
			slices.Sort(needed)
			problems = append(problems, &InUseError{e.sub.phase.name, e.sub.id, needed})
			delete(gone, key{e.sub.phase, e.sub.id})
		}
	}
	return problems
}

// resolve orders each phase that changed.
func (rt *Runtime) resolve(touched map[*phaseCore]*members) (map[*phaseCore]*phasePlan, []error) {
	elsewhere := func(id string) []string {
		var phases []string
		for _, p := range rt.phases {
			all, ok := touched[p.core()]
			if !ok {
				all = rt.members[p.core()]
			}
			if all.find(id) != nil {
				phases = append(phases, p.Name())
			}
		}
		return phases
	}
	plans := make(map[*phaseCore]*phasePlan, len(touched))
	var problems []error
	for _, p := range rt.phases { // in the order of the phases, so that the order of the errors is stable
		c := p.core()
		all, ok := touched[c]
		if !ok {
			continue
		}
		plan, found := orderPhase(c, all, elsewhere, nil)
		if len(found) > 0 {
			problems = append(problems, found...)
			continue
		}
		plans[c] = plan
	}
	return plans, problems
}
