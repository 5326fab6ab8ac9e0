// Package postgres keeps sessions in a PostgreSQL database. It is Belay's durable store for
// many machines.
//
// # Usage
//
//	store, err := postgres.Open(ctx, "postgres://belay@db.example/belay", nil)
//	...
//	defer store.Close()
//	agent, err := belay.New(model, &belay.Options{Store: store})
//
// Any number of processes on any number of machines can open the same database. Open
// creates or migrates the tables, including those of the job queue. The store has most
// features of store/sqlite. You can list and follow the runs of [Store.Journal].
// hook.Runtime.Work runs the jobs of [Store.Queue]. [Store.Sessions] and [Store.Approvals]
// list sessions and approvals. [Store.Export] writes a session as JSON lines. [Store.Prune]
// removes old sessions. [Store.Check] checks the server. docs/postgres.md lists the
// guarantees.
//
// # Holders
//
// An open store is a holder. It sends heartbeats to the server. If no heartbeat arrives for
// two thirds of Options.Takeover, by the server's clock, the holder counts as dead. A
// session belongs to the holder that opened it, with an epoch that every commit carries.
// Each commit compares the epoch in its own transaction. A process that opens a session of
// a dead holder takes it over with a new epoch. It also cleans up: it marks started runs as
// interrupted, and retries or ends running jobs. Processes that run jobs regularly check
// for dead holders. [Store.Recovery] returns what was cleaned up.
//
// A stopped or disconnected process may count as dead although it is alive. Then its
// commits fail with belay.ErrFenced. This protects the store, but does not prevent other
// effects of that process, such as its tool calls. The process can open sessions again.
//
// # Concurrency
//
// A Store is safe for concurrent use. Each write is a transaction on its own connection, so
// that the server can combine concurrent commits. Writes to the same session run one after
// the other. If the server aborts a write because of a conflict, or if the connection is
// lost before the commit, the store retries the write. A listing keeps no connection while
// the caller handles an element. One goroutine sends heartbeats on its own connection. It
// logs when the server becomes unreachable and when it is back. Open starts the goroutine,
// and Close ends it.
//
// If the context of a write ends while the write waits for a connection, the write is
// withdrawn. If a write has begun, it is completed or fails within Options.Timeout. If the
// server does not answer for Options.Timeout, the store closes the connection and repeats
// reads.
//
// # Errors
//
// A problem of the server is a [*ServerError] with the name of the database and advice. It
// usually wraps one of [ErrUnreachable], [ErrRefused], [ErrFull], [ErrReadOnly], [ErrCorrupt],
// [ErrNotStore], [ErrNewer] and [ErrOlder]. Errors contain no passwords. The store
// reconnects automatically. Other errors wrap the sentinel errors of packages belay and
// hook. If the connection is lost during a commit, the result is unknown: open the session
// to find out.
//
// # Testing
//
// The store passes storetest and the suites of hooktest on a real server, which
// internal/pgtest starts. Its tests kill and stop processes, cut connections and restart
// the server.
package postgres
