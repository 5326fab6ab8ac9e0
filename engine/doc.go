// Package engine runs turns in workers, on any number of machines that share a store.
//
// # Usage
//
// Submit a message to a session. One transaction stores the message and makes the session's
// turn due. Then the process can end:
//
//	_, err := agent.Session("demo").Submit(ctx, "tidy the changelog")
//
// A worker runs due turns and background jobs until its context ends. Any number of workers
// can share a store:
//
//	worker, err := engine.New(store, engine.Of(agent), nil)
//	...
//	err = worker.Run(ctx)
//
// Any process can watch a session, starting after any message:
//
//	for update, err := range engine.Watch(ctx, store, "demo", 0) {
//		...
//	}
//
// # Turns
//
// The queue of turns has one entry per session, however many messages wait in the
// session. A worker runs the turns of a session in order, one at a time. A parked turn
// stays in the queue and costs one row. It becomes due again when its approval is decided
// or expires. A worker that shuts down hands over its turns after their current step. If
// a worker is killed, its turns become due again: with store/sqlite at once, with
// store/postgres when the worker's lease in the store expires. The next worker continues
// from the stored state, as [belay.Session.Resume] does. Every write checks the epoch of
// the hold, so a worker that only seemed dead can no longer store anything.
//
// The queue of turns is a table of its own and not a job queue, because a turn belongs to
// the holder of its session. The transaction that releases the session also ends the
// claim, and each session has at most one claim.
//
// # Limits
//
// Options limit how many turns a worker runs at once: in total, per agent and per model.
// The limits are per worker, so two workers run twice as many turns.
//
// # Concurrency
//
// A Worker is safe for concurrent use. After each turn, it closes the session of the
// turn. Run waits for all goroutines that it started.
//
// # Errors
//
// If a turn fails, its error is stored and the turn has ended. If a turn cannot start,
// for example because the store is unreachable, the worker logs the error and retries
// after a pause that grows up to a minute. A turn that repeatedly calls its model but
// cannot be stored is suspended until somebody submits a message to its session or calls
// Wake.
//
// # Testing
//
// storetest.TestTurns defines the behaviour of a [belay.TurnStore]. The tests of this
// package run turns on a file. The tests in engine/internal/fleet start worker processes on
// a PostgreSQL server, kill, stop and disconnect them, and check the result.
package engine
