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
	"github.com/belay-run/belay/store/internal/table"
)

// Options are the settings of a Store. A nil pointer is valid.
type Options struct {
	// Takeover bounds how long others wait for the work of a dead process: within
	// this time its sessions can be opened, and its jobs run. A store sends ten
	// heartbeats in this time. Processes may have different settings. Defaults to
	// 30 seconds.
	Takeover time.Duration
	// Timeout is how long a started write may take, and how long the server may take
	// to answer a request. Defaults to 30 seconds.
	Timeout time.Duration
	// MaxConns is how many connections may be open, plus one for heartbeats, and
	// one for notifications if there are waiters. Defaults to pool_max_conns of the
	// DSN, or else 16.
	MaxConns int
	// Poll is how soon Follow sees runs of other processes; it sees runs of this
	// process at once. Defaults to 250 milliseconds.
	Poll time.Duration
	// MaxJobs is how many jobs can wait. Defaults to 1,024.
	MaxJobs int
	// Workers is how many jobs run at once. Defaults to 4.
	Workers int
	// JobPoll is how often workers look for due jobs. Defaults to 100
	// milliseconds.
	JobPoll time.Duration
	// Grace is how long running jobs may continue after a stop, before they are
	// cancelled. Defaults to 10 seconds.
	Grace time.Duration
	// TurnPoll is how soon a worker sees a due turn, and Changes a change, if a
	// notification of the server is lost. Defaults to 2 seconds.
	TurnPoll time.Duration
	// Clock is for tests. Leases use the server's clock. Defaults to the machine's
	// clock.
	Clock hook.Clock
	// Logger gets errors that no caller receives. Defaults to slog.Default.
	Logger *slog.Logger

	migrations fs.FS // for tests: the migrations of another version
}

// Store keeps sessions in a PostgreSQL database.
type Store struct {
	name string // name of the database, for people
	opts Options
	id   string // of this holder

	plain *pgx.ConnConfig // for connections outside of the pools
	pool  *pgxpool.Pool
	db    *sql.DB // the same connections, for the shared queries
	read  *table.Queries
	// spellings caches the rewritten generated queries, which are few. Queries of
	// listings are not cached.
	spellings sync.Map

	pulse  *pgxpool.Pool // one connection, for heartbeats
	beaten chan struct{} // closed when the goroutine that uses it has ended

	queue   *queue
	stirred broadcast // the journal has new runs
	due     broadcast // a turn may be due
	ear     ear
	owed    owed
	claims  claims

	works, marked atomic.Bool // it is registered as claiming turns

	migrated         [2]int64
	lookedForOverdue atomic.Int64 // when, last
	lookedForGone    atomic.Int64 // time of the last check for dead holders with claimed turns

	commits, transactions atomic.Int64

	ending  sync.Mutex     // guards ended and adding to working
	working sync.WaitGroup // calls of Work
	ended   bool
	closed  chan struct{} // closed when Close is called

	recovering sync.Mutex // guards what follows
	recovered  Recovery
}

// Open opens the store in the database that a DSN names, a URL or libpq keywords.
// The database must exist; the tables are created or migrated. Open cleans up after
// dead processes: see [Store.Recovery]. Several processes, and several stores of
// one process, can open the same database.
func Open(ctx context.Context, dsn string, opts *Options) (_ *Store, err error) {
	s := &Store{closed: make(chan struct{})}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Takeover < 0 || s.opts.Timeout < 0 || s.opts.MaxConns < 0 || s.opts.Poll < 0 || s.opts.TurnPoll < 0 {
		return nil, fmt.Errorf("open store: Takeover %s, Timeout %s, MaxConns %d, Poll %s and TurnPoll %s: none of them can be negative", s.opts.Takeover, s.opts.Timeout, s.opts.MaxConns, s.opts.Poll, s.opts.TurnPoll)
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

// openWithin is how long Open retries while connections are dropped, or the server
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

// isPassing reports whether an unreachable server will probably be back soon: it closed a
// connection, starts or stops. If the server was never reachable, or rejects us, Open
// fails at once.
func isPassing() func(error) bool {
	seen := false
	return func(err error) bool {
		found, ok := errors.AsType[*pgconn.PgError](err)
		seen = seen || isDropped(err) || ok && strings.HasPrefix(found.Code, "57P")
		return seen && isCut(err)
	}
}

// Close closes the store. It stops the workers and waits for them, releases held
// sessions, and marks started runs as interrupted. Followers of the journal get an
// error.
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
	<-s.beaten // so that this holder is not registered again
	err := s.leave()
	s.disconnect()
	if err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// begin registers work that Close waits for. It reports false if Close was
// called.
func (s *Store) begin() bool {
	s.ending.Lock()
	defer s.ending.Unlock()
	if !s.ended {
		s.working.Add(1)
	}
	return !s.ended
}

// disconnect closes the connections.
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

// Name returns the database of the store, without a password.
func (s *Store) Name() string { return s.name }

// Stats counts what a store has written since it was opened.
type Stats struct {
	// Commits counts the calls of Commit that were stored.
	Commits int64
	// Transactions counts the transactions that were committed. Maintenance
	// transactions of the job queue are not counted.
	Transactions int64
}

// Stats returns what the store has written since it was opened.
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
