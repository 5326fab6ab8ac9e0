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

// connect opens two connection pools: one connection that writes, and several that read.
func (s *Store) connect(ctx context.Context) error {
	s.files.note()
	settings := url.Values{
		"_txlock": {"immediate"}, "_foreign_keys": {"1"}, "_journal_mode": {"WAL"}, "_synchronous": {"FULL"},
		"_pragma": {"cache_size(-16384)", "journal_size_limit(67108864)", "secure_delete(1)"}, // secure_delete overwrites deleted content
	}
	if s.fresh { // in an existing file the setting has no effect, and takes a lock
		settings.Set("_auto_vacuum", "incremental")
	}
	s.writer = s.pool(settings, true)
	s.writer.SetMaxOpenConns(1)
	if err := s.writer.PingContext(ctx); err != nil {
		return s.unopened(err)
	}
	// The pool opens its first connection when it is first used.
	s.reader = s.pool(url.Values{"_query_only": {"1"}}, false)
	s.reader.SetMaxOpenConns(max(4, runtime.GOMAXPROCS(0)))
	s.reader.SetConnMaxIdleTime(time.Minute)
	return nil
}

// pool returns a connection pool. It opens no connection yet.
func (s *Store) pool(settings url.Values, writes bool) *sql.DB {
	return sql.OpenDB(&connector{store: s, settings: settings, writes: writes})
}

// connector opens connections to the store's database file. Connect fails if another file
// has replaced it.
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

// moment returns how long SQLite waits for a lock in the writer's connection before the
// store tries again. Other processes usually hold the lock for a shorter time.
func (s *Store) moment() time.Duration { return max(s.opts.BusyTimeout/50, time.Millisecond) }

// makeReady finishes opening the store. While the store is being opened, SQLite waits for
// locks up to Options.BusyTimeout. Afterwards SQLite waits only briefly, and the committer
// tries again.
func (s *Store) makeReady(ctx context.Context) error {
	s.ready.Store(true)
	if _, err := s.writer.ExecContext(ctx, "PRAGMA busy_timeout = "+milliseconds(s.moment())); err != nil {
		return s.unopened(err)
	}
	return nil
}

// executeAlone executes a statement outside of the committer's transactions. It waits for a
// lock up to Options.BusyTimeout.
func (s *Store) executeAlone(ctx context.Context, statement string) error {
	for since := time.Now(); ; {
		_, err := s.writer.ExecContext(ctx, statement)
		if !isBusy(err) || time.Since(since) >= s.opts.BusyTimeout {
			return err //nolint:wrapcheck // the caller adds context
		}
	}
}

// Driver returns SQLite's driver.
func (c *connector) Driver() driver.Driver { return new(sqlite.Driver) }

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// dsn returns the data source name of the file for the driver.
func (s *Store) dsn(settings url.Values) string {
	name := filepath.ToSlash(s.path)
	if !strings.HasPrefix(name, "/") { // the path begins with a drive letter
		name = "/" + name
	}
	settings.Set("mode", cmp.Or(s.opts.mode, "rw")) // mode rw does not create a missing file
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
		{&s.savepoint, "SAVEPOINT belay"},
		{&s.undo, "ROLLBACK TO belay"},
		{&s.release, "RELEASE belay"},
		{&s.foldInsert, foldInsert},
		{&s.placeRuns, placeRuns},
		{&s.placeRun, table.PlaceRun},
	} {
		if *point.stmt, err = s.writer.PrepareContext(ctx, point.text); err != nil { //nolint:sqlclosecheck // closed with the connection
			return s.unopened(err)
		}
	}
	return nil
}
