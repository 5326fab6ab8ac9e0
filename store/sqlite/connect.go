package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"

	"github.com/belay-run/belay/store/internal/table"
)

// connect opens the two pools: the writer, which has one connection, and the
// readers.
func (s *Store) connect(ctx context.Context) error {
	s.files.note()
	settings := url.Values{
		"_txlock": {"immediate"}, "_foreign_keys": {"1"}, "_journal_mode": {"WAL"}, "_synchronous": {"FULL"},
		"_pragma": {"cache_size(-16384)", "journal_size_limit(67108864)", "secure_delete(1)"}, // overwrite deleted content
	}
	if s.fresh { // later it would have no effect, but take a lock
		settings.Set("_auto_vacuum", "incremental")
	}
	s.writer = s.pool(settings, true)
	s.writer.SetMaxOpenConns(1)
	if err := s.writer.PingContext(ctx); err != nil {
		return s.unopened(err)
	}
	// It opens its connection at first use.
	s.reader = s.pool(url.Values{"_query_only": {"1"}}, false)
	s.reader.SetMaxOpenConns(max(4, runtime.GOMAXPROCS(0)))
	s.reader.SetConnMaxIdleTime(time.Minute)
	return nil
}

// pool returns a connection pool that opens no connection yet.
func (s *Store) pool(settings url.Values, writes bool) *sql.DB {
	return sql.OpenDB(&connector{store: s, settings: settings, writes: writes})
}

// connector opens connections to the database file of the store. It rejects a different
// file that has replaced it.
type connector struct {
	store    *Store
	settings url.Values
	writes   bool
}

// Connect opens a connection.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	s, wait, settings := c.store, c.store.opts.BusyTimeout, maps.Clone(c.settings)
	if c.writes && s.ready.Load() {
		wait = s.moment()
	}
	settings.Set("_busy_timeout", milliseconds(wait))
	opener, err := sqlite.NewConnector(s.dsn(settings))
	if err != nil {
		return nil, err //nolint:wrapcheck // explain wants it as it is
	}
	conn, err := opener.Connect(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // likewise
	}
	if err := s.files.opened(c.writes); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// moment returns how long the writer's connection waits for a lock at a time. Other
// processes usually hold the lock for less.
func (s *Store) moment() time.Duration { return max(s.opts.BusyTimeout/50, time.Millisecond) }

// makeReady finishes opening the store. Until then SQLite waits for locks as long as
// Options.BusyTimeout. Afterwards it waits only briefly, and callers retry.
func (s *Store) makeReady(ctx context.Context) error {
	s.ready.Store(true)
	if _, err := s.writer.ExecContext(ctx, "PRAGMA busy_timeout = "+milliseconds(s.moment())); err != nil {
		return s.unopened(err)
	}
	return nil
}

// executeAlone executes a statement outside of the committer's transactions. It waits for
// a lock as long as Options.BusyTimeout.
func (s *Store) executeAlone(ctx context.Context, statement string) error {
	for since := time.Now(); ; {
		_, err := s.writer.ExecContext(ctx, statement)
		if !isBusy(err) || time.Since(since) >= s.opts.BusyTimeout {
			return err //nolint:wrapcheck // the caller adds context
		}
	}
}

// Driver is SQLite's.
func (c *connector) Driver() driver.Driver { return new(sqlite.Driver) }

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// dsn returns the data source name of the file for the driver.
func (s *Store) dsn(settings url.Values) string {
	name := filepath.ToSlash(s.path)
	if !strings.HasPrefix(name, "/") { // a drive letter
		name = "/" + name
	}
	settings.Set("mode", cmp.Or(s.opts.mode, "rw")) // a missing file is not created again
	return "file://" + (&url.URL{Path: name}).EscapedPath() + "?" + settings.Encode()
}

// unopened explains why the file could not be opened.
func (s *Store) unopened(err error) error {
	return fmt.Errorf("open store: %w", s.explain(err))
}

// prepare prepares the statements that are used often.
func (s *Store) prepare(ctx context.Context) (err error) {
	if s.write, err = table.Prepare(ctx, s.writer); err != nil {
		return s.unopened(err)
	}
	s.read = table.New(s.reader)
	for _, point := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&s.savepoint, "SAVEPOINT belay"}, {&s.undo, "ROLLBACK TO belay"}, {&s.release, "RELEASE belay"},
	} {
		if *point.stmt, err = s.writer.PrepareContext(ctx, point.text); err != nil { //nolint:sqlclosecheck // closed with the connection
			return s.unopened(err)
		}
	}
	return nil
}
