// Package sqlite keeps sessions in a file: Belay's durable store on one machine.
//
// # Usage
//
//	store, err := sqlite.Open(ctx, "belay.db", nil)
//	...
//	defer store.Close()
//	agent, err := belay.New(model, &belay.Options{Store: store})
//
// The store keeps the transcript, the records of hooks and their jobs: [Store.Journal]
// can be listed and followed, hook.Runtime.Work runs the jobs of [Store.Queue].
// [Store.Sessions] and [Store.Approvals] list, [Store.Export] writes a session as lines
// of JSON, [Store.Backup] copies the file while it is in use, [Store.Prune] removes old
// sessions, [Store.Check] checks the file. docs/durability.md explains what is durable
// when.
//
// # Holders
//
// Any number of processes may have the file open. Each process locks a file of its own in
// the directory beside the database. A session belongs to the process that opened it,
// under an epoch that every commit carries. The system releases a lock when its process
// ends, even by SIGKILL. Then the next process takes over the session at once, with a new
// epoch, and cleans up: started runs become interrupted, and running jobs are retried or
// ended. Workers of jobs check for dead processes from time to time. [Store.Recovery]
// returns what was cleaned up.
//
// # Concurrency
//
// A Store is safe for concurrent use. One goroutine, the committer, writes on the only
// writing connection. Commits that arrive while it commits are joined in its next
// transaction, so that many sessions share a disk flush. Each commit succeeds or fails on
// its own. Readers have their own connections, see committed data, and never wait. No
// connection is held while a caller's loop runs.
//
// A commit whose context ends while it is queued is withdrawn. A commit that is being
// written is completed, and its caller gets the result.
//
// # Errors
//
// A problem of the file is a [*FileError] with the name of the file and advice. It is one
// of [ErrFull], [ErrReadOnly], [ErrLocked], [ErrReplaced], [ErrCorrupt], [ErrNotStore]
// and [ErrNewer]. The failed write is then not stored at all. Other rejections are the
// sentinel errors of packages belay and hook. Text for people in approvals and decisions
// is stored without secrets and cut at 512 characters.
//
// [Open] checks for damage: files of up to 32 MB completely, larger ones in part. To read
// a file that is damaged, or whose disk is full, open it with [Options.ReadOnly].
//
// On Unix, Open makes the process ignore SIGXFSZ. The system sends it when a file reaches
// the limit of the process (ulimit -f). The write then fails with ErrFull.
//
// # Testing
//
// The store passes storetest and the suites of hooktest on real files. Its tests kill
// processes, fill disks and damage pages. In your own tests, give it a file in t.TempDir,
// or use store/memstore.
package sqlite
