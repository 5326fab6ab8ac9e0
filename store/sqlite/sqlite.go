package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/chain"
	"github.com/belay-run/belay/store/internal/table"
)

// Options are the settings of a Store. A nil pointer is valid.
type Options struct {
	// BusyTimeout is how long a write waits if another program has locked the file.
	// Defaults to 5 seconds.
	BusyTimeout time.Duration
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
	// RecoverPoll is how often Work checks for dead processes and cleans up after them.
	// Defaults to 30 seconds.
	RecoverPoll time.Duration
	// ReadOnly opens an existing file for reading, even if the disk is full or the file is
	// damaged. The store writes nothing and does not clean up. All writes fail with
	// ErrReadOnly.
	ReadOnly bool
	// Clock replaces the machine's clock in tests. Defaults to the machine's clock.
	Clock hook.Clock
	// Logger gets errors that are not returned to a caller. Defaults to slog.Default.
	Logger *slog.Logger

	mode string // mode of SQLite's DSN; "" means "rw"
}

// Store keeps sessions in a file.
type Store struct {
	path string
	opts Options
	id   string   // id of this holder
	lock *os.File // lock file of this holder, locked until Close

	writer *sql.DB // one connection, shared by the committer and the job queue
	reader *sql.DB
	write  *table.Queries // with prepared statements
	read   *table.Queries

	savepoint, undo, release *sql.Stmt
	foldInsert, placeRuns    *sql.Stmt
	placeRun                 *sql.Stmt

	files files // files that SQLite has open
	alone bool  // no other store of this process had the file open
	fresh bool  // the file was empty
	lost  error // transactions that the log has lost; only for a read-only store

	ready atomic.Bool // the store is open, see makeReady

	committer committer
	queue     *queue
	stirred   broadcast // signals that the journal has new runs
	granted   chain.Granted
	watches   watches   // the sessions that callers of Changes watch
	due       broadcast // signals that a turn may be due

	migrated      [2]int64
	opened        time.Time
	lookedForGone atomic.Int64 // time of the last check for dead processes, as a duration since opened
	marked        atomic.Bool  // the database knows that this store claims turns

	ending  sync.Mutex     // guards ended and working.Add
	working sync.WaitGroup // work that Close waits for
	ended   bool
	closed  chan struct{} // closed when Close is called

	recovering sync.Mutex // guards recovered
	recovered  Recovery
}

// Open opens the store in a file, and creates the file if necessary. It cleans up after
// dead processes, see [Store.Recovery]. Several processes can open the same file, and so
// can several stores of one process.
func Open(ctx context.Context, path string, opts *Options) (_ *Store, err error) {
	s := &Store{closed: make(chan struct{}), opened: time.Now()}
	if opts != nil {
		s.opts = *opts
	}
	name, open := locate, s.open
	if s.opts.ReadOnly {
		name, open = find, s.openToRead
	}
	if s.path, err = name(path); err != nil {
		return nil, err
	}
	s.files.path = s.path
	s.opts.BusyTimeout = cmp.Or(s.opts.BusyTimeout, 5*time.Second)
	s.opts.Poll = cmp.Or(s.opts.Poll, 250*time.Millisecond)
	s.opts.RecoverPoll = cmp.Or(s.opts.RecoverPoll, 30*time.Second)
	s.opts.Logger = cmp.Or(s.opts.Logger, slog.Default())
	surviveLimit()
	if err := open(ctx); err != nil {
		return nil, errors.Join(err, s.disconnect())
	}
	s.committer = committer{store: s, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go s.committer.work() // Close ends it
	if s.opts.ReadOnly {
		return s, nil
	}
	if err := s.register(ctx); err != nil {
		s.committer.close()
		return nil, errors.Join(fmt.Errorf("open store: %w", err), s.disconnect())
	}
	if err := s.recover(ctx); err != nil {
		_ = s.Close() // if Close fails, the reason is the same
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

// open opens the file. These steps need exclusive access to the file.
func (s *Store) open(ctx context.Context) error {
	if err := s.use(s.foreign); err != nil {
		return err
	}
	opening, err := s.opening(ctx) // must come first, because SQLite does not wait while another process creates the log
	if err != nil {
		return fmt.Errorf("open store: %w", s.unlockable(err))
	}
	defer func() { _ = opening.Close() }() // then the next process can open the file
	if s.alone && !s.lively() {
		if err := s.checkLog(); err != nil {
			return fmt.Errorf("open store: %w", err)
		}
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	if err := s.checkPages(ctx); err != nil {
		return err
	}
	if err := s.migrate(ctx); err != nil {
		return err
	}
	markMade(opening)
	if err := s.prepare(ctx); err != nil {
		return err
	}
	if err := s.enter(); err != nil {
		return fmt.Errorf("open store: %w", s.unlockable(err))
	}
	if err := s.openQueue(ctx); err != nil {
		return err
	}
	return s.makeReady(ctx)
}

// unlockable adds advice if a lock file could not be created.
func (s *Store) unlockable(err error) error {
	if _, ok := errors.AsType[*os.PathError](err); !ok {
		return err
	}
	if full := outOfRoom(s.path, err); full != nil {
		return full
	}
	return &FileError{Path: s.path, Kind: ErrReadOnly, Remedy: "check that this process can write to the directory of the lock files, " + s.lockDir(), Err: err}
}

// Path returns the name of the store's file.
func (s *Store) Path() string { return s.path }

// Close closes the store. It stops the workers and waits for them, writes queued commits,
// releases held sessions, and marks started runs as interrupted. A Follow that is running
// ends with an error.
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
	var err error
	if !s.opts.ReadOnly {
		err = s.leave()
	}
	s.committer.close()
	return errors.Join(err, s.disconnect())
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

func (s *Store) disconnect() error {
	var errs []error
	for _, pool := range []*sql.DB{s.reader, s.writer} { // this also closes the statements; SQLite removes the log when the last connection closes
		if pool != nil {
			errs = append(errs, pool.Close())
		}
	}
	s.unuse()
	if s.lock != nil {
		errs = append(errs, dropFile(s.lock))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close store: %w", s.explain(err))
	}
	return nil
}

// Journal returns the store's journal of hook runs, a [hook.FollowJournal].
func (s *Store) Journal() hook.Journal { return (*journal)(s) } //nolint:ireturn // belay.JournalStore wants it so

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
