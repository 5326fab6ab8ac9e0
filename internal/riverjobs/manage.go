package riverjobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"github.com/belay-run/belay/hook"
)

// riverStates has River's states of each state of a job, as SQL.
var riverStates = map[hook.JobState]string{
	hook.JobWaiting: waitingStates, hook.JobRunning: "'running'", hook.JobCompleted: "'completed'", hook.JobFailed: "'discarded'", hook.JobCancelled: "'cancelled'",
}

// Jobs does what Queue says.
func (q *engine[TTx]) Jobs(ctx context.Context, filter hook.JobFilter) ([]hook.StoredJob, error) {
	where := []string{"queue = '" + queue + "'"}
	args := make(map[string]any)
	if filter.ID != "" {
		id, err := strconv.ParseInt(filter.ID, 10, 64)
		if err != nil {
			return nil, nil //nolint:nilerr // no job has such an id
		}
		where = append(where, "id = "+strconv.FormatInt(id, 10))
	}
	if filter.After != "" {
		id, err := strconv.ParseInt(filter.After, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("list jobs: %q is not the id of a job", filter.After)
		}
		where = append(where, "id < "+strconv.FormatInt(id, 10))
	}
	if filter.State != "" {
		states, known := riverStates[filter.State]
		if !known {
			return nil, fmt.Errorf("list jobs: there is no state %q", filter.State)
		}
		where = append(where, "state IN ("+states+")")
	}
	if filter.Kind != "" {
		where = append(where, "COALESCE(args ->> 'handler', args ->> 'subscription') = @belay_kind")
		args["belay_kind"] = filter.Kind
	}
	if filter.Session != "" {
		where = append(where, "args -> 'scope' ->> 'session' = @belay_session")
		args["belay_session"] = filter.Session
	}
	rows, err := q.driver.GetExecutor().JobList(ctx, &riverdriver.JobListParams{
		Max: int32(min(cmp.Or(filter.Limit, 100), 10_000)), NamedArgs: args, OrderByClause: "id DESC", WhereClause: strings.Join(where, " AND "),
	})
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	all := make([]hook.StoredJob, len(rows))
	for i, row := range rows {
		all[i] = storedJob(row)
	}
	return all, nil
}

// storedJob describes a row. A row that contains no job has only the fields of the row.
func storedJob(row *rivertype.JobRow) hook.StoredJob {
	job, _ := jobOf(row) // ignore errors: the row is shown all the same
	s := hook.StoredJob{ID: strconv.FormatInt(row.ID, 10), Job: job, Created: row.CreatedAt, Due: row.ScheduledAt, State: hook.JobWaiting}
	if row.Attempt == 0 {
		s.Job.Attempt++ // the attempt has not begun
	}
	if row.AttemptedAt != nil {
		s.Started = *row.AttemptedAt
	}
	if row.FinalizedAt != nil {
		s.Ended = *row.FinalizedAt
	}
	switch row.State {
	case rivertype.JobStateRunning:
		s.State = hook.JobRunning
	case rivertype.JobStateCompleted:
		s.State = hook.JobCompleted
	case rivertype.JobStateDiscarded:
		s.State = hook.JobFailed
	case rivertype.JobStateCancelled:
		s.State = hook.JobCancelled
	case rivertype.JobStateAvailable, rivertype.JobStateScheduled, rivertype.JobStateRetryable, rivertype.JobStatePending:
	}
	return s
}

// lockedRow locks the row of an attempt in the transaction, and reads it.
func (q *engine[TTx]) lockedRow(ctx context.Context, exec riverdriver.Executor, id string) (*rivertype.JobRow, error) {
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return nil, hook.ErrNotFound
	}
	if err := exec.Exec(ctx, "UPDATE river_job SET attempt = attempt WHERE id = "+strconv.FormatInt(number, 10)); err != nil {
		return nil, err //nolint:wrapcheck // the caller adds context
	}
	row, err := exec.JobGetByID(ctx, &riverdriver.JobGetByIDParams{ID: number})
	if errors.Is(err, rivertype.ErrNotFound) || err == nil && row.Queue != queue {
		return nil, hook.ErrNotFound
	}
	return row, err //nolint:wrapcheck // likewise
}

// RetryJob does what Queue says.
func (q *engine[TTx]) RetryJob(ctx context.Context, id string, insert func(ctx context.Context, tx TTx, job hook.Job) error) (stored hook.StoredJob, err error) {
	err = q.backend.Write(ctx, func(ctx context.Context, tx TTx) error {
		exec := q.driver.UnwrapExecutor(tx)
		row, err := q.lockedRow(ctx, exec, id)
		if err != nil {
			return err
		}
		stored = storedJob(row)
		switch stored.State {
		case hook.JobWaiting:
			now := time.Now()
			if row, err = exec.JobRetry(ctx, &riverdriver.JobRetryParams{ID: row.ID, Now: &now}); err == nil {
				stored = storedJob(row)
			}
			return err //nolint:wrapcheck // wrapped below
		case hook.JobRunning, hook.JobCompleted:
			return fmt.Errorf("it is %s: %w", stored.State, hook.ErrJobState)
		case hook.JobFailed, hook.JobCancelled:
		}
		stored, err = again(ctx, exec, row, &stored.Job, func(job hook.Job) error { return insert(ctx, tx, job) })
		return err
	})
	if err != nil {
		return hook.StoredJob{}, fmt.Errorf("retry job %.80q: %w", id, err)
	}
	return stored, nil
}

// again makes a new attempt at a job whose last attempt has ended without success.
func again(ctx context.Context, exec riverdriver.Executor, row *rivertype.JobRow, job *hook.Job, insert func(hook.Job) error) (hook.StoredJob, error) {
	switch {
	case job.Key == "":
		return hook.StoredJob{}, fmt.Errorf("its stored job cannot be read: %w", hook.ErrJobState)
	case job.Handler == "":
		return hook.StoredJob{}, fmt.Errorf("it is the run of a hook, and its input was removed when it ended: %w", hook.ErrJobState)
	}
	next := *job
	next.At = time.Time{}
	if row.Attempt == 0 {
		next.Attempt-- // the attempt has not begun, so its number is free
	}
	next.Retry.Attempts = max(next.Retry.Attempts, next.Attempt+1)
	var last int64
	if err := exec.QueryRow(ctx, "SELECT max(id) FROM river_job").Scan(&last); err != nil {
		return hook.StoredJob{}, err //nolint:wrapcheck // the caller adds context
	}
	if err := insert(next); err != nil {
		return hook.StoredJob{}, err
	}
	made, err := exec.JobList(ctx, &riverdriver.JobListParams{
		Max: 1, NamedArgs: map[string]any{"belay_job": job.ID}, OrderByClause: "id DESC", WhereClause: "queue = '" + queue + "' AND id > " + strconv.FormatInt(last, 10) + " AND args ->> 'id' = @belay_job",
	})
	switch {
	case err != nil:
		return hook.StoredJob{}, err //nolint:wrapcheck // likewise
	case len(made) == 0:
		return hook.StoredJob{}, fmt.Errorf("another job with the key %s waits, runs or has succeeded: %w", job.Key, hook.ErrJobState)
	}
	return storedJob(made[0]), nil
}

// CancelJob does what Queue says.
func (q *engine[TTx]) CancelJob(ctx context.Context, id string) (stored hook.StoredJob, err error) {
	err = q.backend.Write(ctx, func(ctx context.Context, tx TTx) error {
		exec := q.driver.UnwrapExecutor(tx)
		row, err := q.lockedRow(ctx, exec, id)
		if err != nil {
			return err
		}
		if stored = storedJob(row); stored.State != hook.JobWaiting {
			return fmt.Errorf("it is %s: %w", stored.State, hook.ErrJobState)
		}
		now := time.Now()
		row, err = exec.JobUpdateFull(ctx, &riverdriver.JobUpdateFullParams{
			ID: row.ID, StateDoUpdate: true, State: rivertype.JobStateCancelled, FinalizedAtDoUpdate: true, FinalizedAt: &now,
		})
		if err != nil {
			return err //nolint:wrapcheck // wrapped below
		}
		if stored = storedJob(row); stored.Job.Key == "" {
			return nil // the job cannot be read, so its key is unknown
		}
		return q.backend.EndKey(ctx, tx, stored.Job.Key, false)
	})
	if err != nil {
		return hook.StoredJob{}, fmt.Errorf("cancel job %.80q: %w", id, err)
	}
	return stored, nil
}
