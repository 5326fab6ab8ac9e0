// Package postgres keeps sessions in a PostgreSQL database: Belay's durable store
// for many machines.
//
// # Usage
//
//	store, err := postgres.Open(ctx, "postgres://belay@db.example/belay", nil)
//	...
//	defer store.Close()
//	agent, err := belay.New(model, &belay.Options{Store: store})
//
// Any number of processes, on any number of machines, may have one database open.
// Open creates or migrates the tables, and those of the job queue. The store does
// the same as store/sqlite: [Store.Journal] can be listed and followed,
// [Store.Queue] is worked by hook.Runtime.Work, [Store.Sessions] and
// [Store.Approvals] list, [Store.Export] writes a session as lines of JSON,
// [Store.Prune] removes what is old, [Store.Check] checks the server.
// docs/postgres.md lists the guarantees.
//
// # Holders
//
// A store is a holder. It sends heartbeats to the server, and counts as dead
// without one for two thirds of Options.Takeover, by the server's clock. A
// session belongs to the holder that opened it, under an epoch that every commit
// carries and that is compared in the commit's own transaction. A process that
// opens a session of a dead holder takes it over with a new epoch and cleans up:
// started runs become interrupted, jobs are due again or end. Workers of jobs
// check for dead holders from time to time. [Store.Recovery] returns what was
// cleaned up.
//
// If a process only seemed dead, because it was stopped or disconnected, its commits
// fail with belay.ErrFenced. That protects the store, but not against other effects
// of the process. It may open sessions again.
//
// # Concurrency
//
// A Store is safe for concurrent use. Each write is a transaction on a connection of
// its own, so that the server can join the commits of many; writes to one session
// are serialized. A write that the server aborts, because of a conflict or a
// connection lost before the commit, is retried. No connection is held while a
// caller's loop runs. One goroutine, started by Open and ended by Close, sends
// heartbeats on its own connection, and logs when the server is lost and when it is
// back.
//
// A write whose context ends while it waits for a connection is withdrawn. One that is
// being written is seen through, for at most Options.Timeout. A connection on which
// the server is silent for so long is given up, and what was read is read again.
//
// # Errors
//
// Problems of the server are a [*ServerError], with the name of the database and what to do, and is one of
// [ErrUnreachable], [ErrRefused], [ErrFull], [ErrReadOnly], [ErrCorrupt], [ErrNotStore], [ErrNewer] and
// [ErrOlder]. Passwords are in no error. The store reconnects automatically. Other refusals are the
// sentinel errors of packages belay and hook. If the connection is lost during a commit, its result is
// unknown; open the session to find out.
//
// # Testing
//
// The store passes storetest and the suites of hooktest on a real server, which
// internal/pgtest starts. Its tests kill and stop processes, cut connections and
// restart the server.
package postgres
