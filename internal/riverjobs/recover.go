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

// Recovered is the result of Recover: the interrupted attempts, as they are
// recorded now.
type Recovered struct {
	Again []hook.Run // of idempotent jobs, which are retried
	Over  []hook.Run // of other jobs, which are not retried
}

// recoverPage is how many rows Recover reads at a time.
const recoverPage = 200

// Recover settles the attempts of dead clients: their records become
// interrupted, idempotent jobs are due again after their pause, and the others
// have ended. gone is called once for each client that has claimed an
// unsettled job. Recover can be interrupted and called again. Do not call it
// inside a Write.
func (q *Queue[TTx]) Recover(ctx context.Context, gone func(clientID string) bool) (Recovered, error) {
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

// interrupt settles an attempt whose worker has ended.
func (q *Queue[TTx]) interrupt(ctx context.Context, row *rivertype.JobRow, did *Recovered) error {
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
	if err == nil && job.Idempotent {
		again = now.Add(job.Retry.Pause(job.Attempt, rand.Float64()))
	}
	err = q.backend.Write(ctx, func(ctx context.Context, tx TTx) error { return q.settle(ctx, tx, row, job, run, again) })
	if errors.Is(err, hook.ErrSettled) { // the record is already final, and is kept
		q.warn(ctx, job, "an attempt was cut off and is recorded as something else: its job is over", err)
		again = time.Time{}
		err = q.backend.Write(ctx, func(ctx context.Context, tx TTx) error {
			if err := q.hold(ctx, q.driver.UnwrapExecutor(tx), row); err != nil {
				return err
			}
			return q.leave(ctx, tx, row, job, hook.Interrupted, again)
		})
	}
	switch {
	case errors.Is(err, errLost):
		return nil // another process has settled it
	case err != nil:
		return err
	case again.IsZero():
		did.Over = append(did.Over, run)
	default:
		did.Again = append(did.Again, run)
	}
	return nil
}

var (
	_ hook.StatQueue = (*Queue[any])(nil)
	_ hook.WorkQueue = (*Queue[any])(nil)
)
