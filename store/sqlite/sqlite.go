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
	"github.com/belay-run/belay/store/internal/table"
)

// Options are the settings of a Store. A nil pointer is valid.
type Options struct {
	// BusyTimeout is how long a write waits for another program that has the file
	// locked. Defaults to 5 seconds.
	BusyTimeout time.Duration
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
	// RecoverPoll is how often workers of jobs check for dead processes and clean up
	// after them. Defaults to 30 seconds.
	RecoverPoll time.Duration
	// ReadOnly opens an existing file for reading, even if the disk is full or the file
	// is damaged. Nothing is written or cleaned up: all writes fail with ErrReadOnly.
	ReadOnly bool
	// Clock is for tests. Defaults to the machine's clock.
	Clock hook.Clock
	// Logger gets errors that no caller receives. Defaults to slog.Default.
	Logger *slog.Logger

	mode string // SQLite's open mode, for tests; "" for reading and writing
}

// Store keeps sessions in a file.
type Store struct {
	path string
	opts Options
	id   string   // of this holder
	lock *os.File // locked as long as the store is open

	writer *sql.DB // one connection, shared by the committer and the job queue
	reader *sql.DB
	write  *table.Queries // prepared
	read   *table.Queries

	savepoint, undo, release *sql.Stmt

	files files // files that SQLite has open
	alone bool  // this is the first store of this process on these files
	fresh bool  // the file was empty
	lost  error // lost transactions of the log; only set in a read-only store

	ready atomic.Bool // opening is finished: see makeReady

	committer committer
	queue     *queue
	stirred   broadcast // the journal has new runs
	committed broadcast // a session has
	due       broadcast // a turn may be due

	migrated      [2]int64
	opened        time.Time
	lookedForGone atomic.Int64 // delay of the last one
	marked        atomic.Bool  // it is registered as claiming turns

	ending  sync.Mutex     // guards ended and adding to working
	working sync.WaitGroup // calls of Work
	ended   bool
	closed  chan struct{} // closed when Close is called

	recovering sync.Mutex // guards what follows
	recovered  Recovery
}

// Open opens the store in a file, and creates the file if necessary. It
// cleans up after dead processes: see [Store.Recovery]. Several processes,
// and several stores of one process, can open the same file.
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
	go s.committer.work() // ends with Close
	if s.opts.ReadOnly {
		return s, nil
	}
	if err := s.register(ctx); err != nil {
		s.committer.close()
		return nil, errors.Join(fmt.Errorf("open store: %w", err), s.disconnect())
	}
	if err := s.recover(ctx); err != nil {
		_ = s.Close() // if it fails, then for the same reason
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

// open performs the steps that need exclusive access to the file.
func (s *Store) open(ctx context.Context) error {
	if err := s.use(s.foreign); err != nil {
		return err
	}
	opening, err := s.opening(ctx) // first: SQLite does not wait for another process that creates the log
	if err != nil {
		return fmt.Errorf("open store: %w", s.unlockable(err))
	}
	defer func() { _ = opening.Close() }() // which lets the next process in
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

// unlockable explains why a lock file could not be created.
func (s *Store) unlockable(err error) error {
	if _, ok := errors.AsType[*os.PathError](err); !ok {
		return err
	}
	if full := outOfRoom(s.path, err); full != nil {
		return full
	}
	return &FileError{Path: s.path, Kind: ErrReadOnly, Remedy: "a store needs to write its locks in " + s.lockDir(), Err: err}
}

// Path returns the name of the store's file.
func (s *Store) Path() string { return s.path }

// Close closes the store. It stops the workers and waits for them, writes queued
// commits, releases held sessions, and marks started runs as interrupted. Followers
// of the journal get an error.
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

// disconnect closes all connections to the file.
func (s *Store) disconnect() error {
	var errs []error
	for _, pool := range []*sql.DB{s.reader, s.writer} { // with their statements; the last connection removes the log
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
