package riverjobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

const never = 100 * 365 * 24 * time.Hour

// Work runs due jobs until ctx ends. Then it claims no more jobs, waits for running jobs
// during the grace period, and cancels the remaining ones. It returns when all attempts are
// settled. Work begins with attempts that an earlier Work of this queue could not settle.
func (q *engine[TTx]) Work(ctx context.Context, perform func(context.Context, hook.Job) (hook.Run, time.Time)) error {
	if !q.working.CompareAndSwap(false, true) {
		return errors.New("work: Work is already running on this queue")
	}
	defer q.working.Store(false)
	w := &worker[TTx]{q: q, perform: perform}
	err := w.run(ctx)
	switch {
	case ctx.Err() != nil && err != nil && len(w.unsettled) == 0:
		return nil // ctx has ended, which is the normal end of Work
	case err != nil:
		return fmt.Errorf("work: %w", err)
	default:
		return nil
	}
}

// Tending describes maintenance that the owner of a queue does while its jobs run.
type Tending struct {
	// Tend is called before work begins, and then once per interval Every until the work
	// ends.
	Tend  func(context.Context)
	Every time.Duration
	// Closed stops the work when it is closed, as if ctx were cancelled with the cause Why.
	Closed <-chan struct{}
	Why    error
}

// WorkTended does what Queue says.
func (q *engine[TTx]) WorkTended(ctx context.Context, perform func(context.Context, hook.Job) (hook.Run, time.Time), t Tending) error {
	var tending sync.WaitGroup
	defer tending.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tending.Go(func() { // ends when ctx is cancelled
		select {
		case <-t.Closed:
			cancel(t.Why)
		case <-ctx.Done():
		}
	})
	t.Tend(ctx)
	tending.Go(func() { // ends when ctx is cancelled
		often := time.NewTicker(t.Every)
		defer often.Stop()
		for {
			select {
			case <-often.C:
				t.Tend(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
	return q.Work(ctx, perform)
}

// worker is the state of one call of Work.
type worker[TTx any] struct {
	river.WorkerDefaults[rowArgs]
	q       *engine[TTx]
	perform func(context.Context, hook.Job) (hook.Run, time.Time)

	mu        sync.Mutex
	unsettled []error // errors of attempts that could not be settled
}

func (w *worker[TTx]) run(ctx context.Context) error {
	q := w.q
	if _, err := q.Recover(ctx, func(id string) bool { return id == q.opts.ID }); err != nil {
		return err
	}
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, w); err != nil {
		return fmt.Errorf("add a worker to River: %w", err)
	}
	config := &river.Config{
		ID:                   q.opts.ID,
		Queues:               map[string]river.QueueConfig{queue: {MaxWorkers: q.opts.Workers}},
		Workers:              workers,
		FetchPollInterval:    q.opts.Poll,
		FetchCooldown:        min(q.opts.Poll, 10*time.Millisecond),
		PollOnly:             true,
		JobTimeout:           -1,
		RescueStuckJobsAfter: never,
		SoftStopTimeout:      q.opts.Grace,
		MaxAttempts:          maxAttempts,
		Logger:               q.log,
	}
	if q.driver.DatabaseName() == riverdriver.DatabaseNameSQLite {
		config.ReindexerIndexNames = []string{} // River's reindexing would block the writer, and SQLite does not need it
	}
	client, err := river.NewClient(q.driver, config)
	if err != nil {
		return fmt.Errorf("set River up: %w", err)
	}
	if err := client.Start(ctx); err != nil {
		return fmt.Errorf("start River: %w", err)
	}
	<-client.Stopped() // River stops when ctx ends
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.unsettled...)
}

// Timeout tells River that attempts have no timeout. River's rescue of stuck jobs then
// ignores them.
func (w *worker[TTx]) Timeout(*river.Job[rowArgs]) time.Duration { return -1 }

// Work makes one attempt. The error that it returns tells River not to change the row.
func (w *worker[TTx]) Work(ctx context.Context, row *river.Job[rowArgs]) error {
	job, err := jobOf(row.JobRow)
	if err != nil {
		w.settled(ctx, job, w.discard(ctx, row.JobRow, job, err))
		return handled{}
	}
	begun, err := w.begin(ctx, row.JobRow, job)
	if err != nil || !begun {
		w.settled(ctx, job, err)
		return handled{}
	}
	run, again := w.attempt(ctx, job)
	w.settled(ctx, job, w.settle(ctx, row.JobRow, job, run, again))
	return handled{}
}

// handled is an error that tells River to store no result. River supports errors that have
// a result for each of several jobs. This error has results for no job.
type handled struct{}

func (handled) Error() string               { return "settled by belay" }
func (handled) ErrorsByID() map[int64]error { return nil }
func (handled) Jobs() []*rivertype.JobRow   { return nil }

// settled logs and keeps the error of settling an attempt, if there is one.
func (w *worker[TTx]) settled(ctx context.Context, job hook.Job, err error) {
	if err == nil {
		return
	}
	w.q.warn(ctx, job, "the end of an attempt could not be stored", err)
	if errors.Is(err, errLost) || errors.Is(err, hook.ErrSettled) {
		return // another process has settled the attempt
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unsettled = append(w.unsettled, fmt.Errorf("job %q, attempt %d: %w", job.ID, job.Attempt, err))
}

// begin stores that an attempt begins. It returns false if a job with the same key has
// already succeeded.
func (w *worker[TTx]) begin(ctx context.Context, row *rivertype.JobRow, job hook.Job) (begun bool, err error) {
	q := w.q
	err = w.write(ctx, job, func(ctx context.Context, tx TTx) error {
		exec := q.driver.UnwrapExecutor(tx)
		if err := q.hold(ctx, exec, row); err != nil {
			return err
		}
		done, err := q.backend.KeyDone(ctx, tx, job.Key)
		if err != nil {
			return err
		}
		if begun = !done; done {
			return end(ctx, exec, row, rivertype.JobStateCancelled)
		}
		return q.backend.AppendRuns(ctx, tx, []hook.Run{job.Begun(time.Now())})
	})
	return begun, err
}

// attempt runs a job in its own goroutine, so that a panic or runtime.Goexit does not end
// River's goroutine.
func (w *worker[TTx]) attempt(ctx context.Context, job hook.Job) (run hook.Run, again time.Time) {
	run = job.Begun(time.Now())
	class, message := codes.Goexit, "the job's handler ended its goroutine"
	ended := make(chan struct{})
	go func() { // ends when perform has returned; attempt waits for it
		defer close(ended)
		defer func() {
			if cause := recover(); cause != nil {
				class, message = codes.Panic, "the job's handler panicked"
				w.q.warn(ctx, job, message, fmt.Errorf("%v", cause))
			}
		}()
		run, again = w.perform(ctx, job)
		class = ""
	}()
	<-ended
	if class == "" {
		return run, again
	}
	run.State, run.Class, run.Ended = hook.Failed, class, time.Now()
	run.Latency = hook.Latency(run.Ended.Sub(run.Started))
	run.Diagnostics = []hook.Diagnostic{{Code: class, Level: class.Level(), Message: message}}
	if job.Idempotent && job.Attempt < job.Retry.Attempts {
		again = run.Ended.Add(job.Retry.Pause(job.Attempt, rand.Float64()))
	}
	return run, again
}

// settle stores the end of an attempt. It retries, see write.
func (w *worker[TTx]) settle(ctx context.Context, row *rivertype.JobRow, job hook.Job, run hook.Run, again time.Time) error {
	return w.write(ctx, job, func(ctx context.Context, tx TTx) error { return w.q.settle(ctx, tx, row, job, run, again) })
}

// discard ends a row that cannot be read. If the id of its job is known, discard stores a
// failed run.
func (w *worker[TTx]) discard(ctx context.Context, row *rivertype.JobRow, job hook.Job, cause error) error {
	w.q.warn(ctx, job, "a job cannot be read", cause)
	now := time.Now()
	run := job.Begun(now)
	run.State, run.Class, run.Ended = hook.Failed, codes.JobInvalid, now
	run.Diagnostics = []hook.Diagnostic{{Code: run.Class, Level: run.Class.Level(), Message: "the stored job cannot be read"}}
	return w.settle(ctx, row, job, run, time.Time{})
}

// writePause is the pause before a worker retries a write.
const writePause = 200 * time.Millisecond

// write retries a write until it succeeds or the grace period is over, because the run of an
// attempt must not be lost.
func (w *worker[TTx]) write(ctx context.Context, job hook.Job, f func(context.Context, TTx) error) error {
	for {
		last := ctx.Err() != nil
		err := w.q.backend.Write(context.WithoutCancel(ctx), f)
		if err == nil || last || errors.Is(err, errLost) || errors.Is(err, hook.ErrSettled) {
			return err
		}
		w.q.warn(ctx, job, "cannot store the run of a job: retrying", err)
		pause := time.NewTimer(writePause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
		}
	}
}

func (q *engine[TTx]) warn(ctx context.Context, job hook.Job, problem string, err error) {
	q.log.WarnContext(ctx, "a background job has a problem", slog.String("problem", problem), slog.String("job", job.ID), slog.Int("attempt", job.Attempt), slog.String("phase", job.Phase),
		slog.String("subscription", job.Subscription), slog.String("session", job.Scope.Session), slog.String("turn", job.Scope.Turn),
		slog.String("error", err.Error()))
}
