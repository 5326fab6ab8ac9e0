package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// Store is what workers share: one that keeps due turns, records and jobs.
type Store interface {
	belay.TurnStore
	belay.JournalStore
}

// Options are the settings of a Worker. A nil *Options is valid.
type Options struct {
	// Turns is how many turns are taken at once. Defaults to 16.
	Turns int
	// PerAgent and PerModel bound how many of them are of one agent, or ask one model,
	// by name. The name "*" is for those that are not named. Default to no bound but
	// Turns.
	PerAgent, PerModel map[string]int
	// Grace is how long a turn may take to the end of its step when the worker ends.
	// Then it is let go of where it stands. Defaults to 30 seconds.
	Grace time.Duration
	// Told hears of each turn that was taken, with how that went. It is called by
	// several goroutines. Defaults to nobody.
	Told func(Taken)
	// Logger hears of what nobody waits for. Defaults to discarding it.
	Logger *slog.Logger
}

// Taken is a turn that a worker has taken, or tried to.
type Taken struct {
	belay.DueTurn
	// Turn is how it ended. It is nil if there was none to take.
	Turn *belay.Turn
	// Err is what went wrong: [belay.ErrHandedOver] if another worker is to go on.
	Err error
}

// Worker takes the turns that are due in a store and does its background jobs.
type Worker struct {
	store   Store
	agents  Agents
	opts    Options
	running atomic.Bool
	room    *room
}

// New makes a worker of a store and the agents that take its turns.
func New(store Store, agents Agents, opts *Options) (*Worker, error) {
	if store == nil || agents == nil {
		return nil, errors.New("new worker: it needs a store and agents")
	}
	w := &Worker{store: store, agents: agents}
	if opts != nil {
		w.opts = *opts
	}
	if w.opts.Turns < 0 || w.opts.Grace < 0 {
		return nil, fmt.Errorf("new worker: Turns %d and Grace %s: none may be negative", w.opts.Turns, w.opts.Grace)
	}
	for name, bounds := range map[string]map[string]int{"PerAgent": w.opts.PerAgent, "PerModel": w.opts.PerModel} {
		for of, most := range bounds {
			if most < 1 {
				return nil, fmt.Errorf("new worker: %s[%q] is %d: it must be 1 or more", name, of, most)
			}
		}
	}
	w.opts.Turns = cmp.Or(w.opts.Turns, 16)
	w.opts.Grace = cmp.Or(w.opts.Grace, 30*time.Second)
	if w.opts.Logger == nil {
		w.opts.Logger = slog.New(slog.DiscardHandler)
	}
	w.room = newRoom(&w.opts)
	return w, nil
}

// Run takes turns and does jobs until ctx is done or the store is closed. Then it takes
// no more, hands over the turns under way at the end of their steps, for as long as
// Options.Grace, lets go of those that take longer, and returns when all of it is
// settled. Being told to stop is no error.
func (w *Worker) Run(ctx context.Context) error {
	if !w.running.CompareAndSwap(false, true) {
		return errors.New("run: this worker runs already")
	}
	defer w.running.Store(false)
	var jobs, turns sync.WaitGroup
	working, stopJobs := context.WithCancel(ctx)
	defer jobs.Wait()
	defer stopJobs()
	jobs.Go(func() { w.work(working) }) // until Run ends

	yield := make(chan struct{})
	// A turn does not end with ctx: it is handed over.
	taking, handOver := context.WithCancelCause(context.WithoutCancel(ctx))
	defer handOver(nil)
	err := w.claim(ctx, func(due belay.DueTurn, agent *belay.Agent) {
		turns.Go(func() { // until the turn has ended, or Grace is over
			defer w.room.leave(&due, agent.ModelName())
			w.take(taking, yield, due, agent)
		})
	})
	close(yield)
	over := time.AfterFunc(w.opts.Grace, func() { handOver(belay.ErrHandedOver) })
	defer over.Stop()
	turns.Wait()
	return err
}

// pauses grow from the first to the last.
const (
	firstPause = 250 * time.Millisecond
	lastPause  = time.Minute
)

// claim claims turns until ctx is done or the store is closed.
func (w *Worker) claim(ctx context.Context, begin func(belay.DueTurn, *belay.Agent)) error {
	pause := firstPause
	for w.room.wait(ctx) {
		filtered, filter, done := w.room.filter(ctx)
		due, err := w.store.Claim(filtered, filter)
		outdated := filtered.Err() != nil
		done()
		switch {
		case err == nil:
			pause = firstPause
			w.begin(ctx, due, begin)
		case ctx.Err() != nil:
			return nil //nolint:nilerr // being told to stop is how it ends
		case errors.Is(err, belay.ErrClosed):
			return fmt.Errorf("run: %w", err)
		case outdated: // there is more room now
		default:
			w.opts.Logger.WarnContext(ctx, "no turn can be claimed: trying again", "pause", pause, "error", err)
			rest(ctx, pause)
			pause = min(2*pause, 5*time.Second)
		}
	}
	return nil
}

// rest waits, or less if ctx ends.
func rest(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// begin has a turn taken that was claimed, or leaves it to others.
func (w *Worker) begin(ctx context.Context, due belay.DueTurn, begin func(belay.DueTurn, *belay.Agent)) {
	agent, err := w.find(ctx, due.Agent)
	switch {
	case err != nil:
		w.opts.Logger.WarnContext(ctx, "a turn is left to other workers", "session", due.Session, "agent", due.Agent, "error", err)
		w.room.strange(due.Agent)
		w.putBack(ctx, due, err)
		w.tell(Taken{DueTurn: due, Err: err})
	case w.room.enter(&due, agent.ModelName()):
		begin(due, agent)
	default:
		w.putBack(ctx, due, nil)
	}
}

// putBack lets go of a turn that is for others, or for later. It keeps its place.
func (w *Worker) putBack(ctx context.Context, due belay.DueTurn, why error) {
	if due.Why = ""; why != nil {
		due.Why = why.Error()
	}
	w.settle(ctx, due, due.Since)
}

func (w *Worker) tell(taken Taken) {
	if w.opts.Told != nil {
		w.opts.Told(taken)
	}
}

// take takes a turn that was claimed, and lets go of the claim.
func (w *Worker) take(ctx context.Context, yield <-chan struct{}, due belay.DueTurn, agent *belay.Agent) {
	taken := Taken{DueTurn: due}
	s := agent.Session(due.Session)
	taken.Turn, taken.Err = s.RunDue(ctx, &belay.RunDueOptions{Yield: yield})
	if err := s.Close(context.WithoutCancel(ctx)); err != nil {
		w.opts.Logger.WarnContext(ctx, "a session was not closed in order", "session", due.Session, "error", err)
	}
	again := w.again(ctx, &taken)
	if due.Why = ""; taken.Err != nil && !errors.Is(taken.Err, belay.ErrHandedOver) {
		due.Why = taken.Err.Error()
	}
	w.settle(ctx, due, again)
	w.tell(taken)
}

// find finds an agent. A panic there is an error.
func (w *Worker) find(ctx context.Context, name string) (agent *belay.Agent, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic while finding agent %q: %v", name, p)
		}
	}()
	agent, err = w.agents(ctx, name)
	if err == nil && agent == nil {
		err = fmt.Errorf("agent %q: %w", name, belay.ErrNotFound)
	}
	return agent, err
}

// again says when a turn is due again: never, if it has ended.
func (w *Worker) again(ctx context.Context, taken *Taken) time.Time {
	now := time.Now()
	err := taken.Err
	switch {
	case errors.Is(err, belay.ErrHandedOver):
		return now
	case errors.Is(err, belay.ErrNoTurn):
		w.room.recover(taken.Session)
		return time.Time{}
	case err == nil && taken.Turn.Reason == belay.EndParked:
		w.room.recover(taken.Session)
		return expiry(taken.Turn.Waits)
	case err == nil:
		w.room.recover(taken.Session)
		return time.Time{}
	}
	if missing, ok := errors.AsType[*belay.MissingModelError](err); ok && missing.Model == taken.Model {
		w.opts.Logger.WarnContext(ctx, "a turn is left to other workers", "session", taken.Session, "model", taken.Model, "error", err)
		w.room.strangeModel(taken.Model)
		return taken.Since
	}
	// What there is of the turn, looking again tells.
	asked := ""
	if _, lacks := errors.AsType[*belay.MissingToolError](err); !lacks && taken.Turn != nil && taken.Turn.Steps > 0 {
		asked = taken.Turn.ID
	}
	failed := w.room.fail(taken.Session, asked)
	log := w.opts.Logger.With("session", taken.Session, "agent", taken.Agent, "error", err)
	if asked != "" && failed.spent >= spendAtMost {
		log.ErrorContext(ctx, "a turn cannot be stored again and again: it is put off until somebody wakes it", "times", failed.spent)
		return belay.Never
	}
	log.WarnContext(ctx, "a turn did not end well: looking again", "pause", failed.pause)
	return now.Add(failed.pause)
}

// spendAtMost is how often in a row a turn may ask its model and not be stored.
const spendAtMost = 8

// expiry is when the first of the questions expires, or never.
func expiry(waits []belay.Question) time.Time {
	first := belay.Never
	for i := range waits {
		if at := waits[i].Expires; !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return first
}

// settle lets go of a claim. It is tried again until the worker must end: then the end
// of the store does it.
func (w *Worker) settle(ctx context.Context, due belay.DueTurn, again time.Time) {
	for {
		err := w.store.Settle(context.WithoutCancel(ctx), due, again)
		if err == nil || ctx.Err() != nil || errors.Is(err, belay.ErrClosed) {
			return
		}
		w.opts.Logger.WarnContext(ctx, "a turn cannot be settled: trying again", "session", due.Session, "error", err)
		rest(ctx, firstPause)
	}
}

// work does background jobs until ctx is done.
func (w *Worker) work(ctx context.Context) {
	queue, ok := w.store.Queue().(hook.WorkQueue)
	if !ok {
		return
	}
	for ctx.Err() == nil {
		err := queue.Work(ctx, w.perform)
		if errors.Is(err, belay.ErrClosed) {
			return
		}
		if err != nil && ctx.Err() == nil {
			w.opts.Logger.WarnContext(ctx, "background work stopped: beginning again", "error", err)
			rest(ctx, time.Second)
		}
	}
}
