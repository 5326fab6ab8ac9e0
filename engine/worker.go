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

// Store is the store that workers share. It keeps due turns, hook runs and jobs.
type Store interface {
	belay.TurnStore
	belay.JournalStore
}

// Options are the settings of a Worker. A nil *Options is valid.
type Options struct {
	// Turns is the maximum number of turns that run at once. Defaults to 16.
	Turns int
	// PerAgent and PerModel limit how many turns of one agent, or with one model, run at
	// once. The keys are names. The key "*" applies to all names that are not listed.
	// Defaults to no such limits.
	PerAgent, PerModel map[string]int
	// Grace is how long a turn may take to finish its current step when the worker stops.
	// After that the worker releases the turn in the middle of the step. Defaults to 30
	// seconds.
	Grace time.Duration
	// Told is called after each attempt to run a turn, with the result. Several goroutines
	// may call it at once. Defaults to nil.
	Told func(Taken)
	// Logger gets errors that are not returned to a caller. By default they are discarded.
	Logger *slog.Logger
}

// Taken is a turn that a worker has run or tried to run.
type Taken struct {
	belay.DueTurn
	// Turn is the result. It is nil if no turn was run.
	Turn *belay.Turn
	// Err is the error of the attempt. It is [belay.ErrHandedOver] if another worker
	// continues the turn.
	Err error
}

// Worker runs the due turns and the background jobs of a store.
type Worker struct {
	store   Store
	agents  Agents
	opts    Options
	running atomic.Bool
	room    *room

	mu     sync.Mutex
	aborts map[string]*runningTurn // the running turns, by session
}

// New returns a worker for a store and its agents.
func New(store Store, agents Agents, opts *Options) (*Worker, error) {
	if store == nil || agents == nil {
		return nil, errors.New("new worker: the store or the agents are nil: pass both")
	}
	w := &Worker{store: store, agents: agents}
	if opts != nil {
		w.opts = *opts
	}
	if w.opts.Turns < 0 || w.opts.Grace < 0 {
		return nil, fmt.Errorf("new worker: Turns is %d and Grace is %s: neither may be negative", w.opts.Turns, w.opts.Grace)
	}
	for name, bounds := range map[string]map[string]int{"PerAgent": w.opts.PerAgent, "PerModel": w.opts.PerModel} {
		for of, most := range bounds {
			if most < 1 {
				return nil, fmt.Errorf("new worker: %s[%q] is %d: use 1 or more", name, of, most)
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

// Run runs turns and jobs until ctx ends or the store is closed. Then it starts no more
// turns, and hands over running turns after their current step. It releases turns whose
// step takes longer than Options.Grace. Run returns when all work has ended. If ctx ends,
// Run returns nil.
func (w *Worker) Run(ctx context.Context) error {
	if !w.running.CompareAndSwap(false, true) {
		return errors.New("run: this worker is already running")
	}
	defer w.running.Store(false)
	var jobs, turns sync.WaitGroup
	working, stopJobs := context.WithCancel(ctx)
	defer jobs.Wait()
	defer stopJobs()
	jobs.Go(func() { w.work(working) }) // ends before Run returns

	if store, ok := w.store.(belay.RequeueStore); ok {
		jobs.Go(func() { w.passAborts(working, store) }) // ends before Run returns
	}
	yield := make(chan struct{})
	// A running turn does not end when ctx ends. The worker hands it over to another
	// worker.
	taking, handOver := context.WithCancelCause(context.WithoutCancel(ctx))
	defer handOver(nil)
	err := w.claim(ctx, func(due belay.DueTurn, agent *belay.Agent) {
		turns.Go(func() { // ends when the turn has ended, or when Grace is over
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

// firstPause and lastPause are the first and the longest pause between retries.
const (
	firstPause = 250 * time.Millisecond
	lastPause  = time.Minute
)

// claim claims turns until ctx ends or the store is closed.
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
			return nil //nolint:nilerr // stopping is the normal end
		case errors.Is(err, belay.ErrClosed):
			return fmt.Errorf("run: %w", err)
		case outdated: // the worker can run more turns now, so claim with a new filter
		default:
			w.opts.Logger.WarnContext(ctx, "cannot claim a turn: retrying", "pause", pause, "error", err)
			rest(ctx, pause)
			pause = min(2*pause, 5*time.Second)
		}
	}
	return nil
}

// rest waits for a time, or until ctx ends.
func rest(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// begin runs a claimed turn, or leaves it to other workers.
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

// putBack releases a claim, so that another worker, or this one later, can run the turn.
// The turn keeps its position in the queue.
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

// take runs a claimed turn, and releases the claim.
func (w *Worker) take(ctx context.Context, yield <-chan struct{}, due belay.DueTurn, agent *belay.Agent) {
	taken := Taken{DueTurn: due}
	s := agent.Session(due.Session)
	if due.Abort != "" && due.AbortTurn == "" { // the request is for any turn
		taken.Turn, taken.Err = s.Abandon(ctx)
	} else {
		running, abort := context.WithCancelCause(ctx)
		current := &runningTurn{abort: abort}
		w.setRunning(due.Session, current)
		taken.Turn, taken.Err = s.RunDue(running, &belay.RunDueOptions{Yield: yield, Abort: due.AbortTurn, Begun: func(turn string) { w.setTurn(current, turn) }})
		w.setRunning(due.Session, nil)
		abort(nil)
	}
	if err := s.Close(context.WithoutCancel(ctx)); err != nil {
		w.opts.Logger.WarnContext(ctx, "cannot close a session", "session", due.Session, "error", err)
	}
	again := w.again(ctx, &taken)
	if due.Why = ""; taken.Err != nil && !errors.Is(taken.Err, belay.ErrHandedOver) {
		due.Why = taken.Err.Error()
	}
	w.settle(ctx, due, again)
	w.tell(taken)
}

// runningTurn is a turn that this worker runs.
type runningTurn struct {
	turn  string // its id; empty until the turn has begun
	abort context.CancelCauseFunc
}

// setRunning notes which turn of a session runs, or nil if none does.
func (w *Worker) setRunning(session string, current *runningTurn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.aborts == nil {
		w.aborts = make(map[string]*runningTurn)
	}
	if w.aborts[session] = current; current == nil {
		delete(w.aborts, session)
	}
}

// setTurn notes the id of a turn that begins.
func (w *Worker) setTurn(current *runningTurn, turn string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	current.turn = turn
}

// Abort aborts the turn of a session that has the id turn, if this worker runs it. An empty
// id means any turn of the session. The turn ends with the reason aborted, and because says
// why. Abort reports whether this worker runs the turn. It does not wait for the end of the
// turn.
func (w *Worker) Abort(session, turn string, because error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	current := w.aborts[session]
	if current == nil || turn != "" && current.turn != turn {
		return false
	}
	current.abort(because)
	return true
}

// abortPoll is how often a worker looks for requests to abort its turns.
const abortPoll = time.Second

// passAborts aborts running turns when another process has asked for it.
func (w *Worker) passAborts(ctx context.Context, store belay.RequeueStore) {
	for ctx.Err() == nil {
		rest(ctx, abortPoll)
		w.mu.Lock()
		idle := len(w.aborts) == 0
		w.mu.Unlock()
		if idle {
			continue // a worker without turns asks nothing of the store
		}
		w.passAbortsOnce(ctx, store)
	}
}

// passAbortsOnce reads the requests once.
func (w *Worker) passAbortsOnce(ctx context.Context, store belay.RequeueStore) {
	turns, err := store.Aborts(ctx)
	if err != nil && ctx.Err() == nil {
		w.opts.Logger.WarnContext(ctx, "cannot read which turns to abort: retrying", "error", err)
	}
	for i := range turns {
		w.Abort(turns[i].Session, turns[i].AbortTurn, fmt.Errorf("aborted by %s", turns[i].Abort))
	}
}

// find returns the agent with a name. If Agents panics, find returns an error.
func (w *Worker) find(ctx context.Context, name string) (agent *belay.Agent, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the Agents function panicked for agent %q: %v", name, p)
		}
	}()
	agent, err = w.agents(ctx, name)
	if err == nil && agent == nil {
		err = fmt.Errorf("agent %q: %w", name, belay.ErrNotFound)
	}
	return agent, err
}

// again returns when a turn is due again. The zero time means that the turn has ended.
func (w *Worker) again(ctx context.Context, taken *Taken) time.Time {
	now := time.Now()
	err := taken.Err
	switch {
	case errors.Is(err, belay.ErrHandedOver):
		return now
	case taken.Turn != nil && taken.Turn.Reason == belay.EndAborted: // see Abort; the end is stored
		w.room.recover(taken.Session)
		return time.Time{}
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
	// It is unknown which part of the turn was stored. The next attempt reads the turn's
	// state from the store.
	asked := ""
	if _, lacks := errors.AsType[*belay.MissingToolError](err); !lacks && taken.Turn != nil && taken.Turn.Steps > 0 {
		asked = taken.Turn.ID
	}
	failed := w.room.fail(taken.Session, asked)
	log := w.opts.Logger.With("session", taken.Session, "agent", taken.Agent, "error", err)
	if asked != "" && failed.spent >= spendAtMost {
		log.ErrorContext(ctx, "a turn called its model several times and could not be stored: the turn is suspended until a new message arrives or belay.TurnStore.Wake is called", "times", failed.spent)
		return belay.Never
	}
	log.WarnContext(ctx, "a turn failed: retrying", "pause", failed.pause)
	return now.Add(failed.pause)
}

// spendAtMost is how often a turn may call its model without being stored.
const spendAtMost = 8

// expiry returns when the first question expires, or belay.Never.
func expiry(waits []belay.Question) time.Time {
	first := belay.Never
	for i := range waits {
		if at := waits[i].Expires; !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return first
}

// settle releases a claim. It retries until it succeeds or the worker must end. In the
// second case, closing the store releases the claim.
func (w *Worker) settle(ctx context.Context, due belay.DueTurn, again time.Time) {
	for {
		err := w.store.Settle(context.WithoutCancel(ctx), due, again)
		if err == nil || ctx.Err() != nil || errors.Is(err, belay.ErrClosed) {
			return
		}
		w.opts.Logger.WarnContext(ctx, "cannot release the claim on a turn: retrying", "session", due.Session, "error", err)
		rest(ctx, firstPause)
	}
}

// work runs background jobs until ctx ends.
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
			w.opts.Logger.WarnContext(ctx, "running background jobs failed: restarting", "error", err)
			rest(ctx, time.Second)
		}
	}
}
