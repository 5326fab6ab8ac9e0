// Package sqlite keeps sessions in a file. It is Belay's durable store on one machine.
//
// # Usage
//
//	store, err := sqlite.Open(ctx, "belay.db", nil)
//	...
//	defer store.Close()
//	agent, err := belay.New(model, &belay.Options{Store: store})
//
// The store keeps sessions, hook runs and background jobs. You can list and follow the runs
// of [Store.Journal]. hook.Runtime.Work runs the jobs of [Store.Queue]. [Store.Sessions]
// and [Store.Approvals] list sessions and approvals. [Store.Export] writes a session as
// JSON lines. [Store.Backup] copies the file while it is in use. [Store.Prune] removes old
// sessions. [Store.Check] checks the file. See docs/durability.md for what is durable when.
//
// The SQL files in store/internal/table/migrations define the tables. The files in
// store/internal/table/queries contain most of the queries.
//
// # Holders
//
// Any number of processes may have the file open. Each open store locks its own lock file
// in a directory beside the database. A session belongs to the process that opened it,
// with an epoch that every commit carries. The operating system releases the lock when
// the process ends, even by SIGKILL. Then another process can take over the session at
// once, with a new epoch. It also cleans up: it marks started runs as interrupted, and
// retries or ends running jobs. Processes that run jobs regularly check for dead
// processes. [Store.Recovery] returns what was cleaned up.
//
// # Concurrency
//
// A Store is safe for concurrent use. One goroutine, the committer, writes with the only
// writing connection. While it commits, other commits wait. Then it writes up to 96 of them
// in one transaction, so that many sessions share a disk flush. If more wait, turns that
// have begun go first. Each commit succeeds or fails on its own. Readers have their own
// connections, see committed data, and never wait. A listing keeps no connection while the
// caller handles an element.
//
// If the context of a waiting commit ends, the commit is withdrawn. If a commit has begun,
// it is completed, and the caller gets the result.
//
// # Errors
//
// A problem of the file is a [*FileError] with the path and advice. It usually wraps one of
// [ErrFull], [ErrReadOnly], [ErrLocked], [ErrReplaced], [ErrCorrupt], [ErrNotStore],
// [ErrNewer] and [ErrOlder]. Nothing of the failed write is stored. Other errors wrap the sentinel errors
// of packages belay and hook.
//
// The store removes secrets from the reasons of approvals and decisions, and cuts a reason
// at 512 characters.
//
// [Open] checks files of up to 32 MB completely for damage, and larger files in part. To
// read a damaged file, or a file on a full disk, open it with [Options.ReadOnly].
//
// On Unix, Open makes the process ignore the signal SIGXFSZ. The system sends it when a
// file reaches the limit of the process (ulimit -f). The write then fails with ErrFull.
//
// # Testing
//
// The store passes storetest and the suites of hooktest on real files. Its tests kill
// processes, fill disks and damage pages. In your own tests, give it a file in t.TempDir,
// or use store/memstore.
package sqlite
