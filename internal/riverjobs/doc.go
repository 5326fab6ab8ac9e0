// Package riverjobs runs background jobs with River, a job queue. It stores jobs in the
// same database as hook runs, runs them with workers, and stores the end of each attempt
// together with its run.
//
// # Usage
//
// A store provides a River driver and a [Backend]. The Backend gives access to the store's
// transactions, runs and idempotency keys:
//
//	queue, err := riverjobs.New(riversqlite.New(db), backend, &riverjobs.Options{ID: holder})
//	...
//	err = queue.Migrate(ctx)            // River's own tables
//	_, err = queue.Recover(ctx, gone)   // cleans up after dead processes
//	err = queue.Work(ctx, perform)      // until ctx is done
//
// [Queue.Insert] adds jobs to a transaction of the caller, so that a job and its run are
// stored together or not at all. [Queue.Enqueue] does the same in a transaction of its own.
//
// # Attempts
//
// Each row of River is one attempt at a job:
//
//	claim    River marks the row as running        its own transaction
//	begin    the record "started"                  one Write
//	perform  the work                              no transaction
//	settle   the final record, the end of the key  one Write
//	         or the row of the next attempt, and
//	         the end of this row
//
// A process can die at any point. Then either the attempt is completely settled, or its row
// is still running. Recover finds such a row by the id of the client that claimed it. If a
// job is due again, it gets a new row. River's retry of the old row is not used, because
// River or a worker could still change the old row.
//
// perform decides whether there is a next attempt. River's own timeouts, limits of attempts
// and rescue of stuck jobs are not used.
//
// # Concurrency
//
// A Queue is safe for concurrent use, but only one Work can run at a time. On SQLite, River
// and the backend share one connection. So no code in this package uses River's pool inside
// a Write.
//
// # Errors
//
// If the jobs do not fit, the error wraps [hook.ErrQueueFull]. After an error of Insert the
// caller must roll back. If the end of an attempt cannot be written, Work retries until the
// grace period is over. If that fails, too, Work returns an error, and Recover settles the
// attempt later.
//
// # Testing
//
// hooktest.TestQueue and hooktest.TestWorkQueue define the behaviour of a queue. The tests
// of this package also use a real file, and kill a process at every step of an attempt.
package riverjobs
