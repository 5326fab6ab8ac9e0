// Package postgres keeps sessions in a PostgreSQL database: Belay's durable store for many machines.
//
// # Usage
//
//	store, err := postgres.Open(ctx, "postgres://belay@db.example/belay", nil)
//	...
//	defer store.Close()
//	agent, err := belay.New(model, &belay.Options{Store: store})
//
// Any number of processes, on any number of machines, can open one database. Open creates or migrates the
// tables, and those of the job queue. The store does the same as store/sqlite: [Store.Journal] can be
// listed and followed, hook.Runtime.Work runs the jobs of [Store.Queue], [Store.Sessions] and
// [Store.Approvals] list, [Store.Export] writes a session as lines of JSON, [Store.Prune] removes old
// sessions, [Store.Check] checks the server. docs/postgres.md lists the guarantees.
//
// # Holders
//
// A store is a holder. It sends heartbeats to the server. If none arrives for two thirds of
// Options.Takeover, by the server's clock, the holder counts as dead. A session belongs to the holder that
// opened it, under an epoch that every commit carries and that is compared in the commit's own
// transaction. A process that opens a session of a dead holder takes it over with a new epoch and cleans
// up: started runs become interrupted, and running jobs are retried or ended. Workers of jobs check for
// dead holders from time to time. [Store.Recovery] returns what was cleaned up.
//
// If a process only seemed dead, because it was stopped or disconnected, its commits fail with
// belay.ErrFenced. That protects the store, but does not prevent other effects of that process. It can
// open sessions again.
//
// # Concurrency
//
// A Store is safe for concurrent use. Each write is a transaction on a connection of its own, so that the
// server can combine concurrent commits; writes to one session are serialized. A write that the server
// aborts, because of a conflict or a connection lost before the commit, is retried. No connection is held
// while a caller's loop runs. One goroutine, started by Open and ended by Close, sends heartbeats on its
// own connection, and logs when the server is lost and when it is back.
//
// A write whose context ends while it waits for a connection is withdrawn. A started write is completed,
// within Options.Timeout. If the server does not answer for that time, the connection is closed, and reads
// are repeated.
//
// # Errors
//
// A problem of the server is a [*ServerError] with the name of the database and advice. It is one of
// [ErrUnreachable], [ErrRefused], [ErrFull], [ErrReadOnly], [ErrCorrupt], [ErrNotStore], [ErrNewer] and
// [ErrOlder]. Errors contain no passwords. The store reconnects automatically. Other rejections are the
// sentinel errors of packages belay and hook. If the connection is lost during a commit, its result is
// unknown; open the session to find out.
//
// # Testing
//
// The store passes storetest and the suites of hooktest on a real server, which internal/pgtest starts.
// Its tests kill and stop processes, cut connections and restart the server.
package postgres
