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
// Open makes the tables, or brings them up to date, and those of the job queue.
// What the store does is what store/sqlite does: [Store.Journal] can be listed and
// followed, [Store.Queue] is worked by hook.Runtime.Work, [Store.Sessions] and
// [Store.Approvals] list, [Store.Export] writes a session as lines of JSON,
// [Store.Prune] removes what is old, [Store.Check] tells whether all is well.
// docs/postgres.md says what is guaranteed.
//
// # Holders
//
// A store is a holder. It tells the server that it lives, again and again, and
// counts as gone when it has not for two thirds of Options.Takeover, by the
// server's clock. A session belongs to the holder that opened it, under an epoch
// that every commit carries and that is compared in the commit's own transaction.
// Whoever asks for a session of a holder that is gone takes it over, with a new
// epoch, and settles what was left: runs that were started are interrupted, jobs
// are due again or over. Those who work jobs look for such holders from time to
// time. [Store.Recovery] tells what was settled.
//
// A process that was taken for gone and is not, because it was stopped or cut off,
// finds its commits refused with belay.ErrFenced. That protects what is stored; what
// it did in the world meanwhile nobody can take back. It may open sessions again.
//
// # Concurrency
//
// A Store is safe for concurrent use. Each write is a transaction on a connection
// of its own, so that the server can join the commits of many; those that meet on one
// session come after one another. A write that the server breaks off, because it
// crossed another or its connection was cut before the commit, is tried again. No
// connection is held while a caller's loop runs. One goroutine, begun by Open and
// ended by Close, tells the server that the store lives, on a connection that no
// write can keep from it, and the log when the server is lost and when it is back.
//
// A write whose context ends while it waits for a connection is withdrawn. One that
// is being written is seen through, for at most Options.Timeout. A connection on which
// the server is silent for so long is given up, and what was read is read again.
//
// # Errors
//
// What is wrong with the server comes as a [*ServerError], with the name of the
// database and what to do, and is one of [ErrUnreachable], [ErrRefused], [ErrFull],
// [ErrReadOnly], [ErrCorrupt], [ErrNotStore], [ErrNewer] and [ErrOlder]. Passwords are in no error. The store
// connects again by itself. Refusals are the sentinels of packages belay and hook.
// After a commit whose connection was cut while it was under way nobody knows whether
// it is stored, and opening the session tells.
//
// # Testing
//
// The store passes storetest and the suites of hooktest on a real server, which
// internal/pgtest starts. Its tests kill and stop processes, cut connections and
// restart the server.
package postgres
