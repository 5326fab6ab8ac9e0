package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/riverjobs"
	"github.com/belay-run/belay/store/internal/record"
)

// queue is the store's job queue. River's tables are in the same database, so that jobs and
// hook runs are written in one transaction.
type queue struct {
	riverjobs.Queue[pgx.Tx]
	store *Store
}

// Queue returns the store's job queue. It is a [hook.WorkQueue] and a
// [hook.StatQueue].
func (s *Store) Queue() hook.Queue { return s.queue } //nolint:ireturn // belay.JournalStore wants it so

// openQueue opens the queue. prepare creates its tables.
func (s *Store) openQueue() error {
	jobs, err := riverjobs.New(riverpgxv5.New(s.pool), (*backend)(s), &riverjobs.Options{
		ID: s.id, Capacity: s.opts.MaxJobs, Workers: s.opts.Workers, Poll: s.opts.JobPoll, Grace: s.opts.Grace, Logger: s.opts.Logger,
	})
	if err != nil {
		return err
	}
	s.queue = &queue{jobs, s}
	return nil
}

// Work runs due jobs until ctx ends or the store is closed. Store.Close waits until Work
// has returned.
func (q *queue) Work(ctx context.Context, perform func(context.Context, hook.Job) (hook.Run, time.Time)) error {
	s := q.store
	if !s.begin() {
		return fmt.Errorf("work: %s: %w", s.name, belay.ErrClosed)
	}
	defer s.working.Done()
	return s.explain(q.WorkTended(ctx, perform, riverjobs.Tending{Tend: s.recoverAgain, Every: s.recoverPoll(), Closed: s.closed, Why: belay.ErrClosed}))
}

// recoverAgain cleans up after processes that ended after this store was opened. If it
// fails, the next call tries again.
func (s *Store) recoverAgain(ctx context.Context) {
	if err := s.recover(ctx); err != nil && ctx.Err() == nil {
		s.opts.Logger.WarnContext(ctx, "cannot clean up after a dead process", "store", s.name, "error", err)
	}
}

// Enqueue stores jobs, and the run of the hook that scheduled them, in one transaction. If
// the server cannot be reached, Enqueue retries for Options.Timeout, because the caller
// usually cannot report a failure. A retry is safe, because runs have ids and jobs have
// keys.
func (q *queue) Enqueue(ctx context.Context, asked hook.Run, jobs []hook.Job) error {
	b := (*backend)(q.store)
	err := b.writeAgain(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := b.AppendRuns(ctx, tx, []hook.Run{asked}); err != nil {
			return err
		}
		return q.store.insertJobs(ctx, b.writing(ctx), jobs)
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
	job, err := q.Queue.RetryJob(ctx, id, func(ctx context.Context, _ pgx.Tx, job hook.Job) error {
		return q.store.insertJobs(ctx, b.writing(ctx), []hook.Job{job})
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

// writing returns the transaction that Write has put into the context.
func (b *backend) writing(ctx context.Context) *writing {
	return ctx.Value(writingKey{}).(*writing) // only Write begins transactions
}

// Write runs f in a transaction. If the server aborts the transaction, Write calls f again.
func (b *backend) Write(ctx context.Context, f func(ctx context.Context, tx pgx.Tx) error) error {
	return (*Store)(b).submit(ctx, func(ctx context.Context, w *writing) error { return f(inWriting(ctx, w), w.tx) })
}

// writeAgain is like Write, for writes that can be repeated. It repeats a write if the
// server is briefly unreachable, even if the first write may have succeeded.
func (b *backend) writeAgain(ctx context.Context, f func(ctx context.Context, tx pgx.Tx) error) error {
	return (*Store)(b).outlast(ctx, b.opts.Timeout, isCut, func() error { return b.Write(ctx, f) })
}

// AppendRuns stores runs in the transaction.
func (b *backend) AppendRuns(ctx context.Context, _ pgx.Tx, runs []hook.Run) error {
	rows, err := record.RunRows(b.id, runs)
	if err != nil {
		return err
	}
	return b.writing(ctx).appendRuns(ctx, rows)
}

// LockQueue makes other writers of the queue wait until the transaction ends.
func (b *backend) LockQueue(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(enqueuing))
	return err //nolint:wrapcheck // the queue adds context
}

// TakeKeys reserves keys and returns the keys that were free.
func (b *backend) TakeKeys(ctx context.Context, _ pgx.Tx, keys []string) ([]string, error) {
	w := b.writing(ctx)
	return record.TakeKeys(ctx, w.Queries, keys, w.sessions, (*Store)(b).now())
}

// KeyDone reports whether a job with this key has succeeded.
func (b *backend) KeyDone(ctx context.Context, _ pgx.Tx, key string) (bool, error) {
	return record.KeyDone(ctx, b.writing(ctx).Queries, key)
}

// EndKey is called when a job has ended. If done is true, the key stays reserved. Otherwise
// the key is free again.
func (b *backend) EndKey(ctx context.Context, _ pgx.Tx, key string, done bool) error {
	return record.EndKey(ctx, b.writing(ctx).Queries, key, done, (*Store)(b).now())
}

var (
	_ riverjobs.LockBackend[pgx.Tx] = (*backend)(nil)
	_ hook.WorkQueue                = (*queue)(nil)
	_ hook.StatQueue                = (*queue)(nil)
	_ hook.ManageQueue              = (*queue)(nil)
)
