package sqlite

import (
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
	"time"

	"github.com/belay-run/belay/store/internal/table"
)

// resolve returns the one name of a file that all who open it agree on.
func resolve(path string) (string, error) {
	if path == "" || strings.HasPrefix(path, ":memory:") || strings.HasPrefix(path, "file:") {
		return "", fmt.Errorf("open store %q: it needs the name of a file, or use store/memstore", path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("open store: %w", err)
	}
	if found, err := filepath.EvalSymlinks(path); err == nil {
		return found, nil
	}
	// There is no such file yet.
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", &FileError{Path: path, Kind: ErrReadOnly, Remedy: "create the directory " + filepath.Dir(path) + " first", Err: err}
	}
	return filepath.Join(dir, filepath.Base(path)), nil
}

// connect opens the two pools: the writer, which has one connection, and the
// readers.
func (s *Store) connect(ctx context.Context) error {
	if err := s.create(); err != nil {
		return err
	}
	busy := strconv.FormatInt(s.opts.BusyTimeout.Milliseconds(), 10)
	writer, err := sql.Open("sqlite", s.dsn(url.Values{
		"_txlock": {"immediate"}, "_busy_timeout": {busy}, "_auto_vacuum": {"incremental"}, "_foreign_keys": {"1"},
		"_journal_mode": {"WAL"}, "_synchronous": {"FULL"}, "_pragma": {"cache_size(-16384)", "journal_size_limit(67108864)"},
	}))
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	writer.SetMaxOpenConns(1)
	s.writer = writer
	if err := writer.PingContext(ctx); err != nil {
		return s.unopened(err)
	}
	// It opens a connection when it is first asked.
	s.reader, err = sql.Open("sqlite", s.dsn(url.Values{"_busy_timeout": {busy}, "_query_only": {"1"}}))
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	s.reader.SetMaxOpenConns(max(4, runtime.GOMAXPROCS(0)))
	s.reader.SetConnMaxIdleTime(time.Minute)
	return nil
}

// create makes the file if there is none, for its owner alone: it will hold what
// was said. SQLite makes the log as readable as the file.
func (s *Store) create() error {
	file, err := os.OpenFile(s.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	switch {
	case errors.Is(err, os.ErrExist):
		return nil
	case err != nil:
		return fmt.Errorf("open store: %w", &FileError{Path: s.path, Kind: ErrReadOnly, Remedy: "check that the directory " + filepath.Dir(s.path) + " may be written", Err: err})
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	return nil
}

// dsn names the file for the driver.
func (s *Store) dsn(settings url.Values) string {
	name := filepath.ToSlash(s.path)
	if !strings.HasPrefix(name, "/") { // a drive letter
		name = "/" + name
	}
	if s.opts.mode != "" {
		settings.Set("mode", s.opts.mode)
	}
	return "file://" + (&url.URL{Path: name}).EscapedPath() + "?" + settings.Encode()
}

// unopened explains why the file could not be opened.
func (s *Store) unopened(err error) error {
	if info, statErr := os.Stat(s.path); statErr == nil && info.IsDir() {
		return &FileError{Path: s.path, Kind: ErrNotStore, Remedy: "name a file", Err: errors.New("it is a directory")}
	}
	return fmt.Errorf("open store: %w", s.explain(err))
}

// prepare makes the statements that are used again and again.
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
