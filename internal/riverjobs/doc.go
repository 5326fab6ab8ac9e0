// Package riverjobs runs background jobs on River: it stores them in the
// database that holds the records they belong to, hands them to workers, and
// settles each attempt together with its record.
//
// # Usage
//
// A store gives it a River driver and a [Backend], which knows the store's
// transactions, records and idempotency keys:
//
//	queue, err := riverjobs.New(riversqlite.New(db), backend, &riverjobs.Options{ID: holder})
//	...
//	err = queue.Migrate(ctx)            // River's own tables
//	_, err = queue.Recover(ctx, gone)   // what a process that died left behind
//	err = queue.Work(ctx, perform)      // until ctx is done
//
// [Queue.Insert] adds jobs to a transaction that the caller has, so that a job
// and the record that asks for it are stored together or not at all.
// [Queue.Enqueue] does the same with a transaction of its own.
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
// Whatever instant the process dies at, either the attempt is settled in every
// respect or the row is still running, and Recover finds it by the id of the
// client that claimed it. A job that is due again gets a new row rather than
// River's retry of the old one: then nothing that River or a worker still holds
// about the old attempt can touch the new one.
//
// The time of the next attempt and the end of a job are what perform says.
// River's limits of time and attempts, and its rescuer, have no say.
//
// # Concurrency
//
// A Queue is safe for concurrent use, but Work runs once at a time. On SQLite
// River and the backend share one connection, so nothing here asks River's pool
// for anything inside a Write.
//
// # Errors
//
// [hook.ErrQueueFull] refuses jobs that do not fit. After an error of Insert the
// caller must roll back what Insert did. A settle that cannot be written is
// tried again until the grace period is over; if it never succeeds, Work says so
// and the attempt is one for Recover.
//
// # Testing
//
// hooktest.TestQueue and hooktest.TestWorkQueue say what a queue does. The tests
// of this package add what they cannot see: a real file, and a process that is
// killed at every step of an attempt.
package riverjobs
