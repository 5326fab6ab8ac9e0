package riverjobs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"github.com/belay-run/belay/hook"
)

// Recovered is the result of Recover: the runs of the interrupted attempts, as they are
// stored now.
type Recovered struct {
	Again []hook.Run // runs of idempotent jobs, which are retried
	Over  []hook.Run // runs of other jobs, which have ended
}

// recoverPage is how many rows Recover reads with one query.
const recoverPage = 200

// Recover does what Queue says.
func (q *engine[TTx]) Recover(ctx context.Context, gone func(clientID string) bool) (Recovered, error) {
	var did Recovered
	var problems []error
	isGone := make(map[string]bool)
	for after := int64(0); ; {
		rows, err := q.driver.GetExecutor().JobGetStuck(ctx, &riverdriver.JobGetStuckParams{AfterID: after, Max: recoverPage, StuckHorizon: endOfTime})
		if err != nil {
			return did, errors.Join(append(problems, fmt.Errorf("recover jobs: %w", err))...)
		}
		for _, row := range rows {
			after = row.ID
			if row.Kind != kind || row.Queue != queue {
				continue
			}
			id := holder(row)
			if _, asked := isGone[id]; !asked {
				isGone[id] = gone(id)
			}
			if !isGone[id] {
				continue
			}
			if err := q.interrupt(ctx, row, &did); err != nil {
				problems = append(problems, fmt.Errorf("recover jobs: row %d: %w", row.ID, err))
			}
		}
		if len(rows) < recoverPage || ctx.Err() != nil {
			return did, errors.Join(problems...)
		}
	}
}

// interruptedAtMost is how many attempts a job may have if its attempts are interrupted. If
// Retry.Attempts of the job is larger, that number applies. For most jobs it is smaller,
// but usually the job is not to blame. Still, a job that kills its process must not run
// again and again.
const interruptedAtMost = 10

// interrupt settles an attempt of a dead client.
func (q *engine[TTx]) interrupt(ctx context.Context, row *rivertype.JobRow, did *Recovered) error {
	job, err := jobOf(row)
	if err != nil {
		q.warn(ctx, job, "a job cannot be read", err)
	}
	now := time.Now()
	run := job.Begun(now)
	if row.AttemptedAt != nil {
		run.Started = *row.AttemptedAt
	}
	run.State, run.Ended = hook.Interrupted, now
	var again time.Time
	if err == nil && job.Idempotent && job.Attempt < max(job.Retry.Attempts, interruptedAtMost) {
		again = now.Add(job.Retry.Pause(job.Attempt, rand.Float64()))
	}
	err = q.backend.Write(ctx, func(ctx context.Context, tx TTx) error { return q.settle(ctx, tx, row, job, run, again) })
	if errors.Is(err, hook.ErrSettled) { // the stored run has already ended and stays unchanged
		q.warn(ctx, job, "an attempt was interrupted, but its stored run has already ended: the job ends", err)
		again = time.Time{}
		err = q.backend.Write(ctx, func(ctx context.Context, tx TTx) error { return q.endSettled(ctx, tx, row, job, run) })
	}
	switch {
	case errors.Is(err, errLost):
		return nil // another process has settled the attempt
	case err != nil:
		return err
	case again.IsZero():
		did.Over = append(did.Over, run)
	default:
		did.Again = append(did.Again, run)
	}
	return nil
}

// endSettled ends a job whose stored run has already ended. If the run has succeeded, the
// key of the job stays taken, so that the job does not run again. Otherwise the key is
// free.
func (q *engine[TTx]) endSettled(ctx context.Context, tx TTx, row *rivertype.JobRow, job hook.Job, run hook.Run) error {
	if err := q.hold(ctx, q.driver.UnwrapExecutor(tx), row); err != nil {
		return err
	}
	run.State = hook.Completed
	err := q.backend.AppendRuns(ctx, tx, []hook.Run{run}) // accepted only if the stored run is completed
	switch {
	case errors.Is(err, hook.ErrSettled):
		run.State = hook.Interrupted
	case err != nil:
		return err
	}
	return q.leave(ctx, tx, row, job, run.State, time.Time{})
}
