package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/riverqueue/river/riverdriver/riversqlite"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/riverjobs"
	"github.com/belay-run/belay/store/internal/record"
)

// queue is the store's job queue. River's tables are in the same file, so that jobs and
// hook runs are written in one transaction.
type queue struct {
	riverjobs.Queue[*sql.Tx]
	store *Store
}

// Queue returns the store's job queue. It is a [hook.WorkQueue] and a
// [hook.StatQueue].
func (s *Store) Queue() hook.Queue { return s.queue } //nolint:ireturn // belay.JournalStore wants it so

// openQueue creates the queue and its tables. The caller has exclusive access to the file.
func (s *Store) openQueue(ctx context.Context) error {
	jobs, err := riverjobs.New(riversqlite.New(s.writer), (*backend)(s), &riverjobs.Options{
		ID: s.id, Capacity: s.opts.MaxJobs, Workers: s.opts.Workers, Poll: s.opts.JobPoll, Grace: s.opts.Grace, Logger: s.opts.Logger,
	})
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	s.queue = &queue{jobs, s}
	if s.opts.ReadOnly {
		return nil
	}
	if err := jobs.Migrate(ctx); err != nil {
		return fmt.Errorf("open store: %w", s.explain(err))
	}
	return nil
}

// Work runs due jobs until ctx ends or the store is closed. Store.Close waits until Work
// has returned.
func (q *queue) Work(ctx context.Context, perform func(context.Context, hook.Job) (hook.Run, time.Time)) error {
	s := q.store
	if s.opts.ReadOnly {
		return fmt.Errorf("work: %w", s.refusal())
	}
	if !s.begin() {
		return fmt.Errorf("work: %s: %w", s.path, belay.ErrClosed)
	}
	defer s.working.Done()
	return s.explain(q.WorkTended(ctx, perform, riverjobs.Tending{Tend: s.recoverAgain, Every: s.opts.RecoverPoll, Closed: s.closed, Why: belay.ErrClosed}))
}

// recoverAgain cleans up after processes that ended after this store was opened. If it
// fails, the next call tries again.
func (s *Store) recoverAgain(ctx context.Context) {
	if err := s.recover(ctx); err != nil && ctx.Err() == nil {
		s.opts.Logger.WarnContext(ctx, "cannot clean up after a dead process", "store", s.path, "error", err)
	}
}

// Enqueue stores jobs, and the run of the hook that scheduled them, in one transaction.
func (q *queue) Enqueue(ctx context.Context, asked hook.Run, jobs []hook.Job) error {
	b := (*backend)(q.store)
	err := b.Write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if err := b.AppendRuns(ctx, tx, []hook.Run{asked}); err != nil {
			return err
		}
		return q.store.insertJobs(ctx, b.writing(ctx, tx), jobs)
	})
	if err != nil {
		return fmt.Errorf("enqueue: %w", q.store.explain(err))
	}
	return nil
}

// Stats returns the capacity, the numbers of waiting and running jobs, and for how long the
// oldest waiting job has been due.
func (q *queue) Stats(ctx context.Context) (hook.QueueStats, error) {
	stats, err := q.Queue.Stats(ctx)
	return stats, q.store.explain(record.Cause(ctx, err))
}

// Jobs returns the attempts at jobs that match, the newest first.
func (q *queue) Jobs(ctx context.Context, filter hook.JobFilter) ([]hook.StoredJob, error) {
	all, err := q.Queue.Jobs(ctx, filter)
	return all, q.store.explain(record.Cause(ctx, err))
}

// RetryJob makes a waiting job due now, or makes a new attempt at a job that has ended without
// success.
func (q *queue) RetryJob(ctx context.Context, id string) (hook.StoredJob, error) {
	b := (*backend)(q.store)
	job, err := q.Queue.RetryJob(ctx, id, func(ctx context.Context, tx *sql.Tx, job hook.Job) error {
		return q.store.insertJobs(ctx, b.writing(ctx, tx), []hook.Job{job})
	})
	return job, q.store.explain(record.Cause(ctx, err))
}

// CancelJob ends a job that waits.
func (q *queue) CancelJob(ctx context.Context, id string) (hook.StoredJob, error) {
	job, err := q.Queue.CancelJob(ctx, id)
	return job, q.store.explain(record.Cause(ctx, err))
}

// insertJobs stores jobs and links each job's key to the job's session. Every job must be
// stored with insertJobs.
func (s *Store) insertJobs(ctx context.Context, w *writing, jobs []hook.Job) error {
	if len(jobs) == 0 {
		return nil
	}
	w.sessions = make(map[string]string, len(jobs))
	for _, job := range slices.Backward(jobs) { // if two jobs have the same key, the queue stores the first job
		w.sessions[job.Key] = job.Scope.Session
	}
	return s.queue.Insert(inWriting(ctx, w), w.tx, jobs)
}

// recoverJobs ends the jobs that were running in dead processes, or makes them due again.
func (s *Store) recoverJobs(ctx context.Context, gone func(id string) bool) (did Recovery, err error) {
	found, err := s.queue.Recover(ctx, gone)
	for _, run := range found.Again {
		did.Runs, did.Due = append(did.Runs, run.ID), append(did.Due, run.Job)
	}
	for _, run := range found.Over {
		did.Runs, did.Over = append(did.Runs, run.ID), append(did.Over, run.Job)
	}
	return did, s.explain(err)
}

// backend implements riverjobs.Backend: it gives the queue access to the store.
type backend Store

type writingKey struct{}

// inWriting returns a context that carries the transaction and its queries.
func inWriting(ctx context.Context, w *writing) context.Context {
	return context.WithValue(ctx, writingKey{}, w)
}

// writing returns the transaction's queries. If the context has none, it makes them.
func (b *backend) writing(ctx context.Context, tx *sql.Tx) *writing {
	if w, ok := ctx.Value(writingKey{}).(*writing); ok && w.tx == tx {
		return w
	}
	return &writing{Queries: b.write.WithTx(tx), store: (*Store)(b), tx: tx}
}

// Write runs f in a transaction, which other writes may share.
func (b *backend) Write(ctx context.Context, f func(ctx context.Context, tx *sql.Tx) error) error {
	return (*Store)(b).submit(ctx, func(ctx context.Context, w *writing) error { return f(inWriting(ctx, w), w.tx) })
}

// AppendRuns stores runs in the transaction.
func (b *backend) AppendRuns(ctx context.Context, tx *sql.Tx, runs []hook.Run) error {
	rows, err := record.RunRows(b.id, runs)
	if err != nil {
		return err
	}
	return b.writing(ctx, tx).appendRuns(ctx, rows)
}

// TakeKeys reserves keys and returns the keys that were free.
func (b *backend) TakeKeys(ctx context.Context, tx *sql.Tx, keys []string) ([]string, error) {
	w := b.writing(ctx, tx)
	return record.TakeKeys(ctx, w.Queries, keys, w.sessions, (*Store)(b).now())
}

// KeyDone reports whether a job with this key has succeeded.
func (b *backend) KeyDone(ctx context.Context, tx *sql.Tx, key string) (bool, error) {
	return record.KeyDone(ctx, b.writing(ctx, tx).Queries, key)
}

// EndKey is called when a job has ended. If done is true, the key stays reserved. Otherwise
// the key is free again.
func (b *backend) EndKey(ctx context.Context, tx *sql.Tx, key string, done bool) error {
	return record.EndKey(ctx, b.writing(ctx, tx).Queries, key, done, (*Store)(b).now())
}

var (
	_ riverjobs.Backend[*sql.Tx] = (*backend)(nil)
	_ hook.WorkQueue             = (*queue)(nil)
	_ hook.StatQueue             = (*queue)(nil)
	_ hook.ManageQueue           = (*queue)(nil)
)
