// Package memstore keeps sessions in memory. It is the reference for what a
// [belay.Store] does, and enough for tests and for programs whose sessions may
// end with the process.
//
// # Usage
//
//	store := memstore.New(nil)
//
// The store keeps the records of hooks and their jobs too: [Store.Journal] and
// [Store.Queue] implement package hook, and their part of a commit is stored
// together with the rest. The newest runs are kept, up to a limit, and jobs wait
// up to a limit: see [Options]. Sessions are kept until [Store.Forget].
// [Store.Sessions] and [Store.Approvals] list them.
//
// # Concurrency
//
// A Store is safe for concurrent use. One lock guards all sessions; it is held
// while a commit is checked and applied, which takes as long as what the commit
// adds, and never while a caller's code runs. Whoever claims a job of a commit
// and then reads the session finds all of that commit.
//
// Messages are shared and not copied: by the caller of Commit, by everyone who
// reads them and by the store. Nobody may change one. The same goes for the
// inputs and results of calls and for what the slices of a session's state
// hold. The structs around them, and the slices of a commit, are the caller's
// own again when Commit returns. The slice of messages that Open returns may be
// appended to and not written to.
//
// # Errors
//
// Errors wrap the sentinels of package belay, with the session that they are
// about. A commit that is refused has changed nothing. A commit whose context
// has ended by the time it is called is refused with the context's cause.
//
// # Testing
//
// [Store.Expire] makes a session look as if its holder were gone, so that a
// takeover and what it fences off can be tested. Options take a clock, for
// approvals that expire and jobs that are due. Package storetest makes any
// store fail when a test wants it to.
package memstore
