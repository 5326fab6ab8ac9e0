package engine

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/belay-run/belay"
)

// room counts the running turns of a worker, and remembers which agents and models the
// worker leaves to others.
type room struct {
	opts *Options

	mu        sync.Mutex
	turns     int
	agents    map[string]int
	models    map[string]int
	own       map[string]string    // the default models of agents that the worker has run
	strangers map[string]time.Time // unavailable agents, with the time until which they are left to others
	lacking   map[string]time.Time // unavailable models, with the time until which they are left to others
	failures  map[string]failure   // by session: turns that could not be stored
	sweepAt   int                  // number of failures at which fail removes old ones
	changed   chan struct{}        // closed when the filter changes
}

func newRoom(opts *Options) *room {
	return &room{
		opts: opts, agents: make(map[string]int), models: make(map[string]int), own: make(map[string]string),
		strangers: make(map[string]time.Time), lacking: make(map[string]time.Time), failures: make(map[string]failure), sweepAt: fewFailures,
		changed: make(chan struct{}),
	}
}

// wait returns true when another turn may run, and false when ctx ends.
func (r *room) wait(ctx context.Context) bool {
	for {
		r.mu.Lock()
		free, changed := r.turns < r.opts.Turns, r.changed
		r.mu.Unlock()
		if ctx.Err() != nil {
			return false
		}
		if free {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// errMoreRoom cancels a claim whose filter is out of date, because the worker can run more
// turns now.
var errMoreRoom = errors.New("there is more capacity now")

// strangeFor is how long a worker leaves an unavailable agent or model to others.
const strangeFor = 30 * time.Second

// filter returns a filter for the turns that the worker can run now. The returned context
// ends when the worker can run turns that the filter excludes. The caller must call done.
func (r *room) filter(ctx context.Context) (_ context.Context, f belay.TurnFilter, done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	f.ExceptAgents, f.ExceptModels = still(r.strangers, now), still(r.lacking, now)
	for name, n := range r.agents {
		if most, ok := bound(r.opts.PerAgent, name); ok && n >= most {
			f.ExceptAgents = append(f.ExceptAgents, name)
		}
	}
	var full []string
	for name, n := range r.models {
		if most, ok := bound(r.opts.PerModel, name); ok && n >= most {
			full = append(full, name)
		}
	}
	f.ExceptModels = append(f.ExceptModels, full...)
	for agent, model := range r.own { // a turn that names no model uses the agent's default model
		if slices.Contains(full, model) {
			f.ExceptOwn = append(f.ExceptOwn, agent)
		}
	}
	filtered, cancel := context.WithCancelCause(ctx)
	if len(f.ExceptAgents)+len(f.ExceptModels) == 0 {
		return filtered, f, func() { cancel(nil) }
	}
	ended, changed := make(chan struct{}), r.changed
	var watching sync.WaitGroup
	watching.Go(func() { // ends when done is called
		again := time.NewTimer(strangeFor)
		defer again.Stop()
		select {
		case <-changed:
			cancel(errMoreRoom)
		case <-again.C:
			cancel(errMoreRoom)
		case <-ended:
		}
	})
	return filtered, f, func() {
		close(ended)
		watching.Wait()
		cancel(nil)
	}
}

// still returns the names whose time has not passed, and removes the other names from
// until.
func still(until map[string]time.Time, now time.Time) []string {
	maps.DeleteFunc(until, func(_ string, end time.Time) bool { return now.After(end) })
	return slices.Collect(maps.Keys(until))
}

// bound returns the limit for a name, if there is one.
func bound(bounds map[string]int, name string) (int, bool) {
	most, ok := bounds[name]
	if !ok {
		most, ok = bounds["*"]
	}
	return most, ok
}

// enter counts a turn. It returns false and counts nothing if the limit of the model is
// reached.
func (r *room) enter(due *belay.DueTurn, own string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own[due.Agent] = own
	model := cmp.Or(due.Model, own)
	if most, ok := bound(r.opts.PerModel, model); ok && r.models[model] >= most {
		return false
	}
	r.turns++
	r.agents[due.Agent]++
	r.models[model]++
	return true
}

// leave removes a turn from the count.
func (r *room) leave(due *belay.DueTurn, own string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns--
	r.agents[due.Agent]--
	r.models[cmp.Or(due.Model, own)]--
	r.stir()
}

// strange leaves the turns of an agent to other workers for a while.
func (r *room) strange(agent string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.strangers[agent] = time.Now().Add(strangeFor)
	r.stir()
}

// strangeModel leaves the turns that name a model to other workers for a while. Turns that
// name no model still run, even if the model is the default model of their agent.
func (r *room) strangeModel(model string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lacking[model] = time.Now().Add(strangeFor)
	r.stir()
}

// stir signals that the filter has changed. The caller holds r.mu.
func (r *room) stir() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// failure describes a session whose turn could not be stored.
type failure struct {
	turn  string        // id of the last turn that called its model
	spent int           // how often that turn called its model without success
	pause time.Duration // the current pause
	last  time.Time     // time of the last failure
}

// fewFailures is the number of failures that are always kept. If there are more, fail
// removes failures that are older than staleFailure: their sessions run elsewhere or are
// suspended.
const (
	fewFailures  = 4096
	staleFailure = 10 * lastPause
)

// fail records that a session's turn could not be stored. The result has the pause before
// the next attempt, and the number of times that the turn has called its model without
// success. turn is empty if the turn did not call the model.
func (r *room) fail(session, turn string) failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.failures[session]
	f.pause, f.last = min(max(2*f.pause, firstPause), lastPause), time.Now()
	if turn != "" {
		if turn != f.turn {
			f.turn, f.spent = turn, 0
		}
		f.spent++
	}
	r.failures[session] = f
	if len(r.failures) > r.sweepAt {
		maps.DeleteFunc(r.failures, func(_ string, old failure) bool { return f.last.Sub(old.last) > staleFailure })
		r.sweepAt = max(fewFailures, 2*len(r.failures)) // removing old failures is expensive, so it must be rare
	}
	return f
}

// recover removes the failure of a session after a success.
func (r *room) recover(session string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.failures, session)
}
