package riverjobs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// These are the kind and the queue of Belay's jobs in River's tables.
const (
	kind  = "belay_job"
	queue = "belay"
)

// maxAttempts is River's limit of attempts for a row. A row is never claimed that often:
// the queue claims it once, and only River's own tools can retry it.
const maxAttempts = 1000

// waitingStates are River's states of a waiting row, as SQL.
const waitingStates = "'available', 'scheduled', 'retryable', 'pending'"

// rowArgs is a job encoded as JSON. River does not decode it, so that a decoding error can
// only occur inside an attempt.
type rowArgs struct{ json.RawMessage }

// Kind tells River which worker runs the row.
func (rowArgs) Kind() string { return kind }

// UnmarshalJSON stores the text without decoding it.
func (a *rowArgs) UnmarshalJSON(text []byte) error {
	a.RawMessage = slices.Clone(text)
	return nil
}

// jobOf returns the job of a claimed row. Its Attempt includes this attempt.
func jobOf(row *rivertype.JobRow) (hook.Job, error) {
	var job hook.Job
	err := json.Unmarshal(row.EncodedArgs, &job)
	job.Attempt += row.Attempt
	switch {
	case err != nil:
		return job, fmt.Errorf("row %d does not contain a job: %w", row.ID, err)
	case job.ID == "" || job.Key == "":
		return job, fmt.Errorf("row %d contains a job without an id or without a key", row.ID)
	default:
		return job, nil
	}
}

// insertRows adds a row for each job. The row is due at the job's time, or now. Its state
// is already "available", even if its time is in the future: River claims it only when it
// is due. So River needs no elected leader to change the state later.
func (q *engine[TTx]) insertRows(ctx context.Context, exec riverdriver.Executor, jobs []hook.Job) error {
	now := time.Now()
	rows := make([]*riverdriver.JobInsertFastParams, len(jobs))
	for i, job := range jobs {
		text, err := json.Marshal(job)
		if err != nil {
			return fmt.Errorf("job %q: %w", job.ID, err)
		}
		if q.driver.DatabaseName() == riverdriver.DatabaseNamePostgres && holdsNUL(text) {
			return fmt.Errorf("job %q: a text of the job contains a NUL character, which PostgreSQL cannot store: remove it", job.ID)
		}
		due := q.due(now, job.At)
		rows[i] = &riverdriver.JobInsertFastParams{
			Args: rowArgs{text}, EncodedArgs: text, Kind: kind, Queue: queue, CreatedAt: &now, ScheduledAt: &due,
			State: rivertype.JobStateAvailable, Priority: 1, MaxAttempts: maxAttempts, Metadata: []byte("{}"), Tags: []string{},
		}
	}
	if _, err := exec.JobInsertFastManyNoReturning(ctx, &riverdriver.JobInsertFastManyParams{Jobs: rows}); err != nil {
		return fmt.Errorf("insert %d jobs: %w", len(jobs), err)
	}
	return nil
}

// holdsNUL reports whether a JSON text contains an escaped NUL.
func holdsNUL(text []byte) bool {
	for at := 0; ; {
		i := bytes.Index(text[at:], []byte(`\u0000`))
		if i < 0 {
			return false
		}
		at += i + 1
		escapes := 0
		for before := at - 2; before >= 0 && text[before] == '\\'; before-- {
			escapes++
		}
		if escapes%2 == 0 {
			return true // the backslash is not itself escaped
		}
	}
}

// endOfTime is near the last time that SQLite can represent.
var endOfTime = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// due returns the later one of now and at, but at most endOfTime. It rounds up to the
// precision of the database, because rounding down would make the job due too early.
func (q *engine[TTx]) due(now, at time.Time) time.Time {
	if at.Before(now) {
		at = now
	}
	if at.After(endOfTime) {
		at = endOfTime
	}
	precision := q.driver.TimePrecision()
	if down := at.Truncate(precision); down.Before(at) {
		return down.Add(precision).UTC()
	}
	return at.UTC()
}

// errLost means that this worker has lost the attempt: another process has settled it, or
// its row was removed.
var errLost = errors.New("riverjobs: another worker has taken over the attempt")

// hold locks the row of an attempt in the transaction. It returns errLost if this worker
// has lost the attempt.
func (q *engine[TTx]) hold(ctx context.Context, exec riverdriver.Executor, row *rivertype.JobRow) error {
	id := strconv.FormatInt(row.ID, 10)
	// An update that changes nothing locks the row on every database.
	if err := exec.Exec(ctx, "UPDATE river_job SET attempt = attempt WHERE id = "+id); err != nil {
		return fmt.Errorf("hold row %d: %w", row.ID, err)
	}
	now, err := exec.JobGetByID(ctx, &riverdriver.JobGetByIDParams{ID: row.ID})
	switch {
	case errors.Is(err, rivertype.ErrNotFound):
		return fmt.Errorf("row %d was removed: %w", row.ID, errLost)
	case err != nil:
		return fmt.Errorf("hold row %d: %w", row.ID, err)
	case now.State != rivertype.JobStateRunning || now.Attempt != row.Attempt || holder(now) != holder(row):
		return fmt.Errorf("row %d is %s: %w", row.ID, now.State, errLost)
	default:
		return nil
	}
}

// holder returns the id of the client that last claimed the row.
func holder(row *rivertype.JobRow) string {
	if n := len(row.AttemptedBy); n > 0 {
		return row.AttemptedBy[n-1]
	}
	return ""
}

// end sets the final state of a locked row.
func end(ctx context.Context, exec riverdriver.Executor, row *rivertype.JobRow, state rivertype.JobState) error {
	now := time.Now()
	_, err := exec.JobSetStateIfRunningMany(ctx, &riverdriver.JobSetStateIfRunningManyParams{
		ID: []int64{row.ID}, Attempt: []*int{nil}, ErrData: [][]byte{nil}, FinalizedAt: []*time.Time{&now},
		MetadataDoMerge: []bool{false}, MetadataUpdates: [][]byte{nil}, ScheduledAt: []*time.Time{nil},
		State: []rivertype.JobState{state},
	})
	if err != nil {
		return fmt.Errorf("end row %d: %w", row.ID, err)
	}
	return nil
}

// settle stores the end of an attempt in one transaction: its run, the end of its row, and
// either the row of the next attempt or the end of the job's key.
func (q *engine[TTx]) settle(ctx context.Context, tx TTx, row *rivertype.JobRow, job hook.Job, run hook.Run, again time.Time) error {
	exec := q.driver.UnwrapExecutor(tx)
	if err := q.hold(ctx, exec, row); err != nil {
		return err
	}
	if job.ID != "" {
		if err := q.backend.AppendRuns(ctx, tx, []hook.Run{run}); err != nil {
			return err
		}
	}
	if run.State == hook.Interrupted && run.Class == codes.HandlerGone && job.Retry.Attempts > 0 {
		job.Retry.Attempts++ // this attempt does not count: the worker did not have the handler
	}
	return q.leave(ctx, tx, row, job, run.State, again)
}

// leave ends a locked row. It adds a row for the next attempt, or ends the job's key.
func (q *engine[TTx]) leave(ctx context.Context, tx TTx, row *rivertype.JobRow, job hook.Job, state hook.State, again time.Time) error {
	exec := q.driver.UnwrapExecutor(tx)
	last := rivertype.JobStateDiscarded
	switch state {
	case hook.Completed:
		last = rivertype.JobStateCompleted
	case hook.Interrupted:
		last = rivertype.JobStateCancelled
	default:
	}
	if err := end(ctx, exec, row, last); err != nil {
		return err
	}
	switch {
	case state != hook.Completed && !again.IsZero():
		job.At = again
		return q.insertRows(ctx, exec, []hook.Job{job})
	case job.Key == "":
		return nil // the job could not be read, so its key is unknown
	default:
		return q.backend.EndKey(ctx, tx, job.Key, state == hook.Completed)
	}
}
