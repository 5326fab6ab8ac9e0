// Package sqlite keeps sessions in a file: Belay's durable store on one machine.
//
// # Usage
//
//	store, err := sqlite.Open(ctx, "belay.db", nil)
//	...
//	defer store.Close()
//	agent, err := belay.New(model, &belay.Options{Store: store})
//
// The store keeps the transcript, the records of hooks and their jobs:
// [Store.Journal] can be listed and followed, [Store.Queue] is worked by
// hook.Runtime.Work. [Store.Sessions] and [Store.Approvals] list, [Store.Export]
// writes a session as lines of JSON, [Store.Backup] copies the file while it is
// in use, [Store.Prune] removes what is old, [Store.Check] tells whether all is well.
// docs/durability.md says what is durable when.
//
// # Holders
//
// Any number of processes may have the file open. Each has a lock of the operating
// system, on a file in the directory beside the database, and a session belongs to
// the one that opened it, under an epoch that every commit carries. The system lets
// go of a lock when its process ends, even by SIGKILL: the next one to ask takes the
// session over at once, with a new epoch, and settles what was left: runs that were
// started are interrupted, jobs are due again or over. Those who work jobs look for
// such processes from time to time. [Store.Recovery] tells what was settled.
//
// # Concurrency
//
// A Store is safe for concurrent use. One goroutine, the committer, writes, with the
// one connection that may; whatever waits while it commits is joined in its next
// transaction, so that many sessions share the time that the disk takes. Each of them
// stands or falls alone: what refuses one commit does not touch the others. Readers
// have connections of their own, see what is committed, and wait for nobody. No
// connection is held while a caller's loop runs.
//
// A commit whose context ends while it waits in line is withdrawn. One that is
// being written is seen through, and its caller is told how it went.
//
// # Errors
//
// What is wrong with the file comes as a [*FileError], with its name and what to do,
// and is one of [ErrFull], [ErrReadOnly], [ErrLocked], [ErrReplaced], [ErrCorrupt],
// [ErrNotStore] and [ErrNewer]. Nothing is half stored then. Refusals are the sentinels
// of packages belay and hook. Text for people in approvals and decisions is stored
// without secrets and cut at 512 characters.
//
// [Open] checks for damage: files of up to 32 MB completely, larger ones in part. To read
// a file that is damaged, or whose disk is full, open it with [Options.ReadOnly].
//
// On Unix, Open makes the process ignore SIGXFSZ. The system sends it when a file reaches
// the limit of the process (ulimit -f). The write then fails with ErrFull.
//
// # Testing
//
// The store passes storetest and the suites of hooktest on real files. Its tests
// kill processes, fill disks and damage pages. For tests of one's own, give it a file
// in t.TempDir, or use store/memstore.
package sqlite
