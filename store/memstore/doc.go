// Package memstore keeps sessions in memory. It is the reference implementation of
// [belay.Store]. Use it in tests, and in programs that can lose their sessions when the
// process ends.
//
// # Usage
//
//	store := memstore.New(nil)
//
// The store also keeps hook runs and background jobs. [Store.Journal] and [Store.Queue]
// implement the interfaces of package hook. A commit stores its runs and jobs together with
// its messages. [Options] limits the number of runs and of waiting jobs. The store keeps a
// session until [Store.Forget] or [Store.Delete]. [Store.Sessions] and [Store.Approvals]
// list sessions and approvals.
//
// # Concurrency
//
// A Store is safe for concurrent use. One lock guards all sessions. Commit takes the lock
// while it checks and applies a commit, in time proportional to the size of the commit. The
// store never calls the caller's code under the lock. A worker that claims a job of a
// commit and then reads the session sees the whole commit.
//
// The store does not copy messages: it shares them with the caller of Commit and with all
// readers. Do not change a message after Commit. Do not change the inputs and results of
// calls either, or the elements of slices in a session's state. When Commit returns, you
// can reuse the commit, its slices and its state. You can append to the slice of messages
// that Open returns, but you must not write to its elements.
//
// # Errors
//
// Errors wrap the sentinel errors of package belay and name the session. A rejected commit
// changes nothing. If the context has already ended, Commit returns the context's cause.
//
// # Testing
//
// [Store.Expire] makes the holder of a session count as gone, to test takeover and fencing.
// Set [Options.Clock] to test approvals that expire and jobs that are delayed. Package
// storetest injects failures into any store.
package memstore
