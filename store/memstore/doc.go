// Package memstore keeps sessions in memory. It is the reference for what a
// [belay.Store] does, and suits tests and programs that can lose their sessions
// when the process ends.
//
// # Usage
//
//	store := memstore.New(nil)
//
// The store also keeps the records of hooks and their jobs: [Store.Journal] and
// [Store.Queue] implement the interfaces of package hook, and a commit stores
// records and jobs together with the rest. [Options] limits how many records and
// waiting jobs are kept. Sessions are kept until [Store.Forget].
// [Store.Sessions] and [Store.Approvals] list them.
//
// # Concurrency
//
// A Store is safe for concurrent use. One lock guards all sessions; it is held
// while a commit is checked and applied, in time proportional to what the commit
// adds, and never while a caller's code runs. A worker that claims a job of a
// commit and then reads the session sees the whole commit.
//
// Messages are not copied: the caller of Commit, all readers and the store share
// them. Do not change a message after Commit. The same holds for the inputs and
// results of calls and for the elements of slices in a session's state. You can
// reuse the structs around them, and the slices of a commit, when Commit
// returns. You can append to the slice of messages that Open returns, but must
// not write to its elements.
//
// # Errors
//
// Errors wrap the sentinel errors of package belay and name the session. A
// rejected commit changes nothing. If the context has already ended, Commit is
// rejected with the context's cause.
//
// # Testing
//
// [Store.Expire] makes the holder of a session count as gone, to test takeover
// and fencing. Options take a clock, to test approvals that expire and delayed
// jobs. Package storetest injects failures into any store.
package memstore
