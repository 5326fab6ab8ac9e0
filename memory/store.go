package memory

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"

	"github.com/belay-run/belay/hook"
)

// StoreOptions are the settings of a [Store]. A nil pointer is valid.
type StoreOptions struct {
	// BusyTimeout is how long a write waits if another program has locked the file.
	// Defaults to 5 seconds.
	BusyTimeout time.Duration
	// Clock replaces the machine's clock in tests. Defaults to the machine's clock.
	Clock hook.Clock
}

// Store keeps memories in a file. It is safe for concurrent use and has no goroutines of
// its own. Several processes may have the same file open.
type Store struct {
	path string
	opts StoreOptions

	writer *sql.DB // one connection
	reader *sql.DB
	stmts  statements

	unclean atomic.Bool // the log may still contain forgotten text
	closed  atomic.Bool
}

// Open opens a memory file. It creates the file if necessary. Only the owner can read the
// file.
func Open(ctx context.Context, path string, opts *StoreOptions) (*Store, error) {
	if path == "" || strings.HasPrefix(path, ":memory:") || strings.HasPrefix(path, "file:") {
		return nil, fmt.Errorf("open memories %q: this is not a file name: pass the path of a file", path)
	}
	whole, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open memories: %w", err)
	}
	s := &Store{path: whole}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.BusyTimeout = cmp.Or(s.opts.BusyTimeout, 5*time.Second)
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open memories %s: %w", whole, err), s.disconnect())
	}
	return s, nil
}

// Path returns the path of the file.
func (s *Store) Path() string { return s.path }

// Close closes the file.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if s.unclean.Load() {
		_ = s.scrub(context.Background()) // if this fails, the last process that closes the file empties the log
	}
	if err := s.disconnect(); err != nil {
		return fmt.Errorf("close memories %s: %w", s.path, err)
	}
	return nil
}

func (s *Store) disconnect() error {
	var problems []error
	for _, pool := range []*sql.DB{s.reader, s.writer} {
		if pool != nil {
			problems = append(problems, pool.Close())
		}
	}
	return errors.Join(problems...)
}

func (s *Store) open(ctx context.Context) error {
	if info, err := os.Stat(s.path); err == nil && info.IsDir() {
		return errors.New("the path is a directory: pass the path of a file")
	}
	file, err := os.OpenFile(s.path, os.O_CREATE|os.O_RDWR, 0o600) // only the owner can read it, because it will contain private text
	if err != nil {
		return fmt.Errorf("%w: check that its directory exists and is writable", err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("make it: %w", err)
	}
	busy := strconv.FormatInt(s.opts.BusyTimeout.Milliseconds(), 10)
	s.writer, err = sql.Open("sqlite", s.dsn(url.Values{
		"_txlock": {"immediate"}, "_busy_timeout": {busy}, "_journal_mode": {"WAL"}, "_synchronous": {"FULL"}, "_foreign_keys": {"1"},
		"_pragma": {"secure_delete(1)", "cache_size(-16384)", "journal_size_limit(4194304)"}, // secure_delete removes forgotten text from the file
	}))
	if err != nil {
		return explain(err)
	}
	s.writer.SetMaxOpenConns(1)
	if err := s.retrying(ctx, s.writer.PingContext); err != nil {
		return explain(err)
	}
	if err := s.retrying(ctx, s.migrate); err != nil {
		return err
	}
	if s.reader, err = sql.Open("sqlite", s.dsn(url.Values{"_busy_timeout": {busy}, "_query_only": {"1"}, "_pragma": {"cache_size(-16384)"}})); err != nil {
		return explain(err)
	}
	s.reader.SetMaxOpenConns(max(4, runtime.GOMAXPROCS(0)))
	s.reader.SetMaxIdleConns(max(4, runtime.GOMAXPROCS(0)))
	s.reader.SetConnMaxIdleTime(time.Minute)
	return s.prepare(ctx)
}

// retrying calls do until the file is no longer busy, for at most BusyTimeout. It is needed
// when another process creates the log of a new file, because SQLite itself does not wait
// then.
func (s *Store) retrying(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.BusyTimeout)
	defer cancel()
	for {
		err := do(ctx)
		if !isBusy(err) {
			return err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// These are result codes of SQLite.
const (
	codeBusy, codeLocked, codeReadOnly = 5, 6, 8
	codeCorrupt, codeFull, codeNotADB  = 11, 13, 26
)

func codeOf(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

func isBusy(err error) bool { return codeOf(err) == codeBusy || codeOf(err) == codeLocked }

// explain adds advice to an error of SQLite.
func explain(err error) error {
	var remedy string
	switch codeOf(err) {
	case codeBusy, codeLocked:
		remedy = "another program has locked the file: try again"
	case codeReadOnly:
		remedy = "check that the file and its directory are writable"
	case codeCorrupt:
		remedy = "the file is damaged: restore a backup"
	case codeFull:
		remedy = "the disk is full: free some space"
	case codeNotADB:
		remedy = "the file is not a database: use another file"
	default:
		return err
	}
	return fmt.Errorf("%w: %s", err, remedy)
}

// dsn returns the data source name of the file for the driver.
func (s *Store) dsn(settings url.Values) string {
	name := filepath.ToSlash(s.path)
	if !strings.HasPrefix(name, "/") { // the path begins with a drive letter
		name = "/" + name
	}
	return "file://" + (&url.URL{Path: name}).EscapedPath() + "?" + settings.Encode()
}

// applicationID marks a file as a memory file. In ASCII it is "bmem".
const applicationID = 0x626d656d

// migrations are the steps that create the tables. A file's user_version is the number of
// steps that were applied.
var migrations = []string{`
CREATE TABLE scopes (
	id   INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE
);
CREATE TABLE memories (
	num     INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again: the index is in this order
	id      TEXT NOT NULL UNIQUE,
	scope   INTEGER NOT NULL REFERENCES scopes (id),
	state   TEXT NOT NULL CHECK (state IN ('active', 'proposed', 'forgotten')),
	text    TEXT NOT NULL,
	tags    TEXT NOT NULL,
	digest  BLOB, -- of the text; NULL once that is forgotten
	session TEXT NOT NULL,
	turn    TEXT NOT NULL,
	created INTEGER NOT NULL,
	updated INTEGER NOT NULL
);
CREATE UNIQUE INDEX memories_same ON memories (scope, digest) WHERE digest IS NOT NULL;
CREATE INDEX memories_state ON memories (state, num);

-- How many active memories have a word. Words begin with the number of their scope; the number alone counts all of its memories.
CREATE TABLE words (
	word     TEXT PRIMARY KEY,
	memories INTEGER NOT NULL
) WITHOUT ROWID;

-- The turns that were gone through for what is worth remembering.
CREATE TABLE extractions (
	session TEXT NOT NULL,
	turn    TEXT NOT NULL,
	at      INTEGER NOT NULL,
	PRIMARY KEY (session, turn)
) WITHOUT ROWID;

CREATE VIRTUAL TABLE found USING fts5 (words, detail = none, columnsize = 0, tokenize = 'ascii');
INSERT INTO found (found, rank) VALUES ('secure-delete', 1);
`}

// migrate applies the missing migrations in one transaction.
func (s *Store) migrate(ctx context.Context) error {
	tx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return explain(err)
	}
	defer func() { _ = tx.Rollback() }() // after Commit this does nothing
	var id, version, tables int
	for pragma, into := range map[string]*int{"PRAGMA application_id": &id, "PRAGMA user_version": &version, "SELECT count(*) FROM sqlite_schema": &tables} {
		if err := tx.QueryRowContext(ctx, pragma).Scan(into); err != nil {
			return explain(err)
		}
	}
	switch {
	case id != applicationID && (id != 0 || tables > 0):
		return errors.New("the file is a database of another program: use another file")
	case version > len(migrations):
		return fmt.Errorf("the file has version %d, but this program supports only up to %d: use a newer version of Belay, or another file", version, len(migrations))
	case version == len(migrations):
		return nil
	}
	for _, step := range migrations[version:] {
		if _, err := tx.ExecContext(ctx, step); err != nil {
			return explain(err)
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, len(migrations))); err != nil {
		return explain(err)
	}
	return explain(tx.Commit())
}

func (s *Store) now() time.Time {
	if s.opts.Clock != nil {
		return s.opts.Clock.Now()
	}
	return time.Now()
}
