// Package riverjobs runs background jobs on River: it stores them in the same database as
// their records, gives them to workers, and settles each attempt together with its record.
//
// # Usage
//
// A store gives it a River driver and a [Backend], which knows the store's transactions,
// records and idempotency keys:
//
//	queue, err := riverjobs.New(riversqlite.New(db), backend, &riverjobs.Options{ID: holder})
//	...
//	err = queue.Migrate(ctx)            // River's own tables
//	_, err = queue.Recover(ctx, gone)   // cleans up after dead processes
//	err = queue.Work(ctx, perform)      // until ctx is done
//
// [Queue.Insert] adds jobs to a transaction that the caller has, so that a job and its
// record are stored together or not at all. [Queue.Enqueue] does the same in its own
// transaction.
//
// # Attempts
//
// A row of River is one attempt at a job:
//
//	claim    River marks the row as running        its own transaction
//	begin    the record "started"                  one Write
//	perform  the work                              no transaction
//	settle   the final record, the end of the key  one Write
//	         or the row of the next attempt, and
//	         the end of this row
//
// Whenever the process dies, either the attempt is completely settled or the row is still
// running, and Recover finds it by the id of the client that claimed it. A job that is due
// again gets a new row rather than River's retry of the old one: then nothing that River or
// a worker still holds about the old attempt can touch the new one.
//
// perform decides about the next attempt and the end of a job. River's own timeouts, limits
// of attempts and rescuer are not used.
//
// # Concurrency
//
// A Queue is safe for concurrent use, but Work runs once at a time. On SQLite River and the
// backend share one connection, so nothing here uses River's pool inside a Write.
//
// # Errors
//
// Jobs that do not fit are rejected with [hook.ErrQueueFull]. After an error of Insert the
// caller must roll back what Insert did. A settle that cannot be written is retried until
// the grace period is over; if it never succeeds, Work returns an error and Recover settles
// the attempt later.
//
// # Testing
//
// hooktest.TestQueue and hooktest.TestWorkQueue define the behaviour of a queue. The tests
// of this package add a real file, and a process that is killed at every step of an
// attempt.
package riverjobs
