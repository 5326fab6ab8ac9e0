package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/chain"
	"github.com/belay-run/belay/store/internal/table"
)

// Options are the settings of a Store. A nil pointer is valid.
type Options struct {
	// Takeover is the maximum time until others can take over the work of a dead process:
	// open its sessions and run its jobs. A store sends ten heartbeats in this time.
	// Processes may have different settings. Defaults to 30 seconds.
	Takeover time.Duration
	// Timeout is the maximum time of a write that has begun, and of the server's answer to
	// a request. Defaults to 30 seconds.
	Timeout time.Duration
	// MaxConns is the maximum number of connections in the pool. The store opens one more
	// for heartbeats, and one for notifications if something waits for turns or changes.
	// Defaults to pool_max_conns of the DSN, or else 16.
	MaxConns int
	// Poll is how often Follow looks for runs of other processes. Follow sees runs of this
	// process at once. Defaults to 250 milliseconds.
	Poll time.Duration
	// MaxJobs is the maximum number of waiting jobs. Defaults to 1,024.
	MaxJobs int
	// Workers is how many jobs run at once. Defaults to 4.
	Workers int
	// JobPoll is how often workers look for due jobs. Defaults to 100
	// milliseconds.
	JobPoll time.Duration
	// Grace is how long running jobs may continue after Work is stopped. Then they are
	// cancelled. Defaults to 10 seconds.
	Grace time.Duration
	// TurnPoll is how often Claim looks for due turns, and Changes for changes, in case a
	// notification of the server is lost. Defaults to 2 seconds.
	TurnPoll time.Duration
	// Clock replaces the machine's clock in tests. Leases always use the server's clock.
	// Defaults to the machine's clock.
	Clock hook.Clock
	// Logger gets errors that are not returned to a caller. Defaults to slog.Default.
	Logger *slog.Logger

	migrations fs.FS // for tests: the migrations of another version
}

// Store keeps sessions in a PostgreSQL database.
type Store struct {
	name string // names the database in errors and logs, without a password
	opts Options
	id   string // id of this holder

	plain *pgx.ConnConfig // settings of connections outside of the pools
	pool  *pgxpool.Pool
	db    *sql.DB // uses the connections of pool, for the shared queries
	read  *table.Queries
	// spellings caches the generated queries in PostgreSQL's syntax. There are only a few
	// of them. Queries of listings are not cached.
	spellings sync.Map

	pulse  *pgxpool.Pool // one connection, for heartbeats
	beaten chan struct{} // closed when beat has ended

	queue   *queue
	stirred broadcast // signals that the journal has new runs
	due     broadcast // signals that a turn may be due
	ear     ear
	owed    owed
	lanes   lanes
	granted chain.Granted

	checkpointed time.Time // when checkpointLater looked last; only beat uses it

	claims claims

	works, marked atomic.Bool // works: this store claims turns; marked: the database has a record of that

	migrated         [2]int64
	lookedForOverdue atomic.Int64 // time of the last check for delayed turns
	lookedForGone    atomic.Int64 // time of the last check for dead holders with claimed turns

	commits, transactions atomic.Int64

	ending  sync.Mutex     // guards ended and working.Add
	working sync.WaitGroup // work that Close waits for
	ended   bool
	closed  chan struct{} // closed when Close is called

	recovering sync.Mutex // guards recovered
	recovered  Recovery
}

// Open opens the store in a database. The DSN is a URL or libpq keywords. The database must
// exist. Open creates or migrates the tables, and cleans up after dead processes, see
// [Store.Recovery]. Several processes can open the same database, and so can several stores
// of one process.
func Open(ctx context.Context, dsn string, opts *Options) (_ *Store, err error) {
	s := &Store{closed: make(chan struct{})}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Takeover < 0 || s.opts.Timeout < 0 || s.opts.MaxConns < 0 || s.opts.Poll < 0 || s.opts.TurnPoll < 0 {
		return nil, fmt.Errorf("open store: Takeover is %s, Timeout is %s, MaxConns is %d, Poll is %s and TurnPoll is %s: none of them may be negative", s.opts.Takeover, s.opts.Timeout, s.opts.MaxConns, s.opts.Poll, s.opts.TurnPoll)
	}
	s.opts.Takeover = cmp.Or(s.opts.Takeover, 30*time.Second)
	s.opts.Timeout = cmp.Or(s.opts.Timeout, 30*time.Second)
	s.opts.Poll = cmp.Or(s.opts.Poll, 250*time.Millisecond)
	s.opts.TurnPoll = cmp.Or(s.opts.TurnPoll, 2*time.Second)
	s.opts.Logger = cmp.Or(s.opts.Logger, slog.Default())
	if err := s.open(ctx, dsn); err != nil {
		s.disconnect()
		return nil, fmt.Errorf("open store: %w", s.explain(err))
	}
	if err := s.outlast(ctx, openWithin, isPassing(), func() error { return s.recover(ctx) }); err != nil {
		return nil, errors.Join(fmt.Errorf("open store: %w", s.explain(err)), s.Close())
	}
	return s, nil
}

// openWithin is how long Open retries while connections are dropped, or while the server
// starts or stops.
const openWithin = 10 * time.Second

func (s *Store) open(ctx context.Context, dsn string) error {
	if err := s.connect(ctx, dsn); err != nil {
		return err
	}
	err := s.outlast(ctx, openWithin, isPassing(), func() error {
		if err := s.pool.Ping(ctx); err != nil {
			return err //nolint:wrapcheck // Open adds context
		}
		if err := s.prepare(ctx); err != nil {
			return err
		}
		return s.register(ctx)
	})
	if err != nil {
		return err
	}
	s.beaten = make(chan struct{})
	go s.beat() //nolint:gosec // ends with Close, and not with the context that it was opened under
	return nil
}

// isPassing returns a function that reports whether Open should retry. It returns true if
// the server has closed a connection, or is starting or stopping. If the server was never
// reachable or rejects the connection, Open fails at once.
func isPassing() func(error) bool {
	seen := false
	return func(err error) bool {
		found, ok := errors.AsType[*pgconn.PgError](err)
		seen = seen || isDropped(err) || ok && strings.HasPrefix(found.Code, "57P")
		return seen && isCut(err)
	}
}

// Close closes the store. It stops the workers and waits for them, releases held sessions,
// and marks started runs as interrupted. A Follow that is running ends with an error.
func (s *Store) Close() error {
	s.ending.Lock()
	ended := s.ended
	s.ended = true
	s.ending.Unlock()
	if ended {
		return nil
	}
	close(s.closed)
	s.working.Wait()
	<-s.beaten // a heartbeat would register this holder again
	err := s.leave()
	if s.lanes.mark(false) {
		if _, failed := s.checkpoint(context.Background()); failed != nil { // the next checkpoint of another store has the lanes
			s.opts.Logger.Debug("cannot add a checkpoint to the audit chain", "store", s.name, "error", failed)
		}
	}
	s.disconnect()
	if err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// begin registers work that Close must wait for. It returns false if Close was already
// called.
func (s *Store) begin() bool {
	s.ending.Lock()
	defer s.ending.Unlock()
	if !s.ended {
		s.working.Add(1)
	}
	return !s.ended
}

func (s *Store) disconnect() {
	if s.db != nil {
		_ = s.db.Close() // the pool owns the connections
	}
	for _, pool := range []*pgxpool.Pool{s.pool, s.pulse} {
		if pool != nil {
			pool.Close()
		}
	}
}

// Journal returns the store's journal of hook runs, a [hook.FollowJournal].
func (s *Store) Journal() hook.Journal { return (*journal)(s) } //nolint:ireturn // belay.JournalStore wants it so

// Name names the database and the server, without a password.
func (s *Store) Name() string { return s.name }

// Stats counts writes since the store was opened.
type Stats struct {
	// Commits counts the successful calls of Commit.
	Commits int64
	// Transactions counts the committed transactions. Maintenance transactions of the job
	// queue are not included.
	Transactions int64
}

// Stats returns the number of writes since the store was opened.
func (s *Store) Stats() Stats {
	return Stats{Commits: s.commits.Load(), Transactions: s.transactions.Load()}
}

func (s *Store) now() time.Time {
	if s.opts.Clock != nil {
		return s.opts.Clock.Now()
	}
	return time.Now()
}

var (
	_ belay.JournalStore = (*Store)(nil)
	_ belay.ListStore    = (*Store)(nil)
	_ hook.FollowJournal = (*journal)(nil)
)
