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

// room tracks the free capacity of a worker, and what it leaves to others.
type room struct {
	opts *Options

	mu        sync.Mutex
	turns     int
	agents    map[string]int
	models    map[string]int
	own       map[string]string    // the known models of agents
	strangers map[string]time.Time // agents that are unavailable, each until a time
	lacking   map[string]time.Time // models, likewise
	failures  map[string]failure   // failures of sessions whose turns cannot start
	sweepAt   int                  // number of failures at which old ones are forgotten
	changed   chan struct{}        // closed when there is more room
}

func newRoom(opts *Options) *room {
	return &room{
		opts: opts, agents: make(map[string]int), models: make(map[string]int), own: make(map[string]string),
		strangers: make(map[string]time.Time), lacking: make(map[string]time.Time), failures: make(map[string]failure), sweepAt: fewFailures,
		changed: make(chan struct{}),
	}
}

// wait returns when there is room for a turn. It reports false when ctx is done.
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

// errMoreRoom cancels a claim that was started with less capacity than there is
// now.
var errMoreRoom = errors.New("there is more capacity now")

// strangeFor is how long an unavailable agent or model is left to others.
const strangeFor = 30 * time.Second

// filter returns what there is capacity for, and a context that ends when there is
// more. Call done afterwards.
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
	for agent, model := range r.own { // an agent with its own model does not lack it
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
	watching.Go(func() { // until done is called
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

// still returns the names whose time is not over. The others are forgotten.
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

// enter counts a turn of an agent whose model is known. It reports false, and counts
// nothing, if there is no capacity for the model.
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

// leave ends the count of a turn.
func (r *room) leave(due *belay.DueTurn, own string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns--
	r.agents[due.Agent]--
	r.models[cmp.Or(due.Model, own)]--
	r.stir()
}

// strange leaves an agent to others for a while.
func (r *room) strange(agent string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.strangers[agent] = time.Now().Add(strangeFor)
	r.stir()
}

// strangeModel leaves the turns of a model to others for a while. It does not affect
// agents that have the model themselves.
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

// failure records a session whose turn could not start.
type failure struct {
	turn  string        // the last turn that called its model
	spent int           // number of calls without success
	pause time.Duration // the current pause
	last  time.Time     // when that was
}

// fewFailures is how many failures are always kept. If there are more, those older than
// staleFailure are forgotten: their sessions run elsewhere or are suspended.
const (
	fewFailures  = 4096
	staleFailure = 10 * lastPause
)

// fail records that a session's turn could not be stored. It returns how long to wait and
// how often the turn has called its model without success. turn is empty if it did not
// call the model. A turn that ended with a stored error does not come here again.
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
		r.sweepAt = max(fewFailures, 2*len(r.failures)) // so that the cleanup costs little
	}
	return f
}

// recover removes the record after a success.
func (r *room) recover(session string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.failures, session)
}
