package riverjobs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/riverqueue/river/riverdriver"

	"github.com/belay-run/belay/hook"
)

// Enqueue stores jobs, and the run of the hook that scheduled them, in one transaction.
func (q *engine[TTx]) Enqueue(ctx context.Context, asked hook.Run, jobs []hook.Job) error {
	err := q.backend.Write(ctx, func(ctx context.Context, tx TTx) error {
		if err := q.backend.AppendRuns(ctx, tx, []hook.Run{asked}); err != nil {
			return err
		}
		return q.Insert(ctx, tx, jobs)
	})
	if err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	return nil
}

// Insert does what Queue says.
func (q *engine[TTx]) Insert(ctx context.Context, tx TTx, jobs []hook.Job) error {
	if len(jobs) == 0 {
		return nil
	}
	keys := make([]string, 0, len(jobs))
	byKey := make(map[string]hook.Job, len(jobs))
	for _, job := range jobs {
		if job.ID == "" || job.Key == "" {
			return fmt.Errorf("insert: job %q has no id or no key: set both", job.ID)
		}
		if _, twice := byKey[job.Key]; !twice {
			byKey[job.Key] = job
			keys = append(keys, job.Key)
		}
	}
	taken, err := q.backend.TakeKeys(ctx, tx, keys)
	if err != nil {
		return fmt.Errorf("insert: %w", err)
	}
	if len(taken) == 0 {
		return nil
	}
	fresh := make([]hook.Job, 0, len(taken))
	for _, key := range keys { // in the order of jobs
		if slices.Contains(taken, key) {
			fresh = append(fresh, byKey[key])
		}
	}
	slices.SortStableFunc(fresh, func(a, b hook.Job) int { return a.At.Compare(b.At) })
	exec := q.driver.UnwrapExecutor(tx)
	waiting, err := q.room(ctx, tx, exec, len(fresh))
	if err != nil {
		return fmt.Errorf("insert: %w", err)
	}
	if waiting+len(fresh) > q.opts.Capacity {
		return fmt.Errorf("insert: cannot add %d jobs: %d jobs already wait, and the limit is %d: %w", len(fresh), waiting, q.opts.Capacity, hook.ErrQueueFull)
	}
	return q.insertRows(ctx, exec, fresh)
}

// crowd is the assumed maximum number of jobs in other transactions that are not visible
// yet.
const crowd = 512

// room counts the waiting jobs for a caller that wants to add more. If several transactions
// can write at the same time, room takes the lock and counts again. It takes no lock if so
// much space is free that concurrent writers cannot fill it.
func (q *engine[TTx]) room(ctx context.Context, tx TTx, exec riverdriver.Executor, more int) (int, error) {
	waiting, err := q.waiting(ctx, exec)
	backend, several := q.backend.(LockBackend[TTx])
	if err != nil || !several || waiting+more+crowd <= q.opts.Capacity {
		return waiting, err
	}
	if err := backend.LockQueue(ctx, tx); err != nil {
		return 0, fmt.Errorf("lock the queue: %w", err)
	}
	return q.waiting(ctx, exec)
}

// waiting counts the waiting jobs, but stops at one more than the capacity. It reads only
// an index, no rows.
func (q *engine[TTx]) waiting(ctx context.Context, exec riverdriver.Executor) (int, error) {
	const from = "SELECT count(*) FROM (SELECT 1 FROM river_job WHERE queue = '" + queue + "' AND state IN (" + waitingStates + ") LIMIT "
	var n int
	if err := exec.QueryRow(ctx, from+strconv.Itoa(q.opts.Capacity+1)+") AS waiting").Scan(&n); err != nil {
		return 0, fmt.Errorf("count the waiting jobs: %w", err)
	}
	return n, nil
}

// Stats returns the capacity, the numbers of waiting and running jobs, and for how long the
// oldest waiting job has been due. Do not call Stats inside a Write.
func (q *engine[TTx]) Stats(ctx context.Context) (hook.QueueStats, error) {
	const where = " FROM river_job WHERE queue = '" + queue + "' AND state "
	stats := hook.QueueStats{Capacity: q.opts.Capacity}
	exec := q.driver.GetExecutor()
	err := exec.QueryRow(ctx, "SELECT (SELECT count(*)"+where+"IN ("+waitingStates+")), (SELECT count(*)"+where+"= 'running')").Scan(&stats.Waiting, &stats.Running)
	if err != nil {
		return hook.QueueStats{}, fmt.Errorf("count jobs: %w", err)
	}
	oldest, err := exec.JobList(ctx, &riverdriver.JobListParams{
		Max: 1, OrderByClause: "scheduled_at ASC", WhereClause: "queue = '" + queue + "' AND state IN (" + waitingStates + ")",
	})
	if err != nil {
		return hook.QueueStats{}, fmt.Errorf("find the oldest job: %w", err)
	}
	if len(oldest) > 0 {
		stats.OldestAge = max(0, time.Since(oldest[0].ScheduledAt))
	}
	return stats, nil
}
