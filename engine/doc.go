// Package engine takes turns: in the process that asks for them, or in workers on as
// many machines as share a store.
//
// # Usage
//
// Whoever has a message for a session submits it. It is stored with the note that the
// session's turn is due, in one transaction, and the caller may leave:
//
//	_, err := agent.Session("demo").Submit(ctx, "tidy the changelog")
//
// A worker takes the turns that are due and does background jobs, until its context
// ends. Any number of workers share a store:
//
//	worker, err := engine.New(store, engine.Of(agent), nil)
//	...
//	err = worker.Run(ctx)
//
// Anybody watches a session, from any process and from any message on:
//
//	for update, err := range engine.Watch(ctx, store, "demo", 0) {
//		...
//	}
//
// # Turns
//
// A session is on the list of due turns once, however many messages wait in it; they
// are taken in the order they came, one turn at a time. A turn that parks stays on the
// list and costs a row: the decision of its approval makes it due again, and so does
// the approval's expiry. A worker that ends in order hands its turns over at the end of
// their steps. What a worker had claimed that was killed is due again when the store
// counts it as gone; whoever claims it goes on from what is stored, as
// [belay.Session.Resume] does. Every write is fenced, so a worker that was only thought
// dead stores nothing any more.
//
// The list is a table of its own and no queue of the job engine, because a turn belongs
// to the one who holds its session: a claim ends with its holder, in the transaction
// that lets go of the session, and there is one for each session.
//
// # Limits
//
// A worker takes so many turns at once, and of each agent and each model so many. They
// are this worker's: two workers take twice as many.
//
// # Concurrency
//
// A Worker is safe for concurrent use. Its agents are its own: it closes their sessions
// when their turns have ended. Run waits for all goroutines that it has begun.
//
// # Errors
//
// A turn that fails ends with an error on record, as everywhere. What keeps a turn from
// being taken at all, such as a store that cannot be reached, is logged, and the turn
// is tried again after a pause that grows up to a minute. One that asks its model again
// and again and cannot be stored is put off until somebody wakes it.
//
// # Testing
//
// storetest.TestTurns says what a store of due turns does. The tests of this package take
// turns on a file; those in internal/fleet start workers as processes on a PostgreSQL
// server, kill, stop and cut them off, and hold what is left against what must be.
package engine
