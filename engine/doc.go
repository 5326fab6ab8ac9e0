// Package engine runs turns in workers, on any number of machines that share a
// store.
//
// # Usage
//
// Submit a message to a session. One transaction stores it and marks the session's
// turn as due, and the caller may exit:
//
//	_, err := agent.Session("demo").Submit(ctx, "tidy the changelog")
//
// A worker runs due turns and background jobs until its context ends. Any number of
// workers share a store:
//
//	worker, err := engine.New(store, engine.Of(agent), nil)
//	...
//	err = worker.Run(ctx)
//
// Any process can watch a session, from any message:
//
//	for update, err := range engine.Watch(ctx, store, "demo", 0) {
//		...
//	}
//
// # Turns
//
// A session is on the list of due turns once, however many messages wait in it; they
// are processed in order, one turn at a time. A parked turn stays on the list and costs
// one row: the decision of its approval makes it due again, and so does the approval's
// expiry. A worker that shuts down hands its turns over at the end of their steps. If a
// worker is killed, its turns are due again when its lease in the store expires. The
// next worker continues from the stored state, as [belay.Session.Resume] does. Every
// write is fenced, so a worker that only seemed dead can no longer store anything.
//
// The list is a separate table and not a queue of the job engine, because a turn
// belongs to the holder of its session: a claim ends in the transaction that releases
// the session, and each session has one claim.
//
// # Limits
//
// Options limit how many turns a worker runs at once, in total, per agent and per
// model. The limits are per worker: two workers run twice as many.
//
// # Concurrency
//
// A Worker is safe for concurrent use. It closes the sessions of its agents when their
// turns have ended. Run waits for all goroutines that it started.
//
// # Errors
//
// A turn that fails ends with a stored error. If a turn cannot start, for example
// because the store is unreachable, the error is logged and the turn is retried after a
// pause that grows up to a minute. A turn that repeatedly calls its model and cannot be
// stored is suspended until it is woken.
//
// # Testing
//
// storetest.TestTurns defines the behaviour of a store of due turns. The tests of this
// package run turns on a file; those in internal/fleet start worker processes on a
// PostgreSQL server, kill, stop and disconnect them, and check the result.
package engine
