package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay/store/internal/table"
)

// named returns the whole name of a file.
func named(path string) (string, error) {
	if path == "" || strings.HasPrefix(path, ":memory:") || strings.HasPrefix(path, "file:") {
		return "", fmt.Errorf("open store %q: it needs the name of a file, or use store/memstore", path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("open store: %w", err)
	}
	return path, nil
}

// locate returns the one name of a file that all who open it agree on. It makes the
// file if there is none: a link that leads nowhere has no such name.
func locate(path string) (string, error) {
	path, err := named(path)
	if err != nil {
		return "", err
	}
	if err := create(path); err != nil {
		return "", err
	}
	found, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("open store: %w", uncreated(path, err))
	}
	return found, nil
}

// create makes a file if there is none, for its owner alone: it will hold what was
// said. SQLite makes the log as readable as the file.
func create(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return nil // if it cannot be looked at, it cannot be opened
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) // where a link leads, if it is one
	if err != nil {
		return fmt.Errorf("open store: %w", uncreated(path, err))
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	return nil
}

// uncreated explains why there is no file.
func uncreated(path string, err error) error {
	e := &FileError{Path: path, Kind: ErrReadOnly, Remedy: "check that the directory " + filepath.Dir(path) + " may be written", Err: err}
	if to, err := os.Readlink(path); err == nil {
		e.Remedy = "it is a link to " + to + ": check that this can be made"
	} else if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, os.ErrNotExist) {
		e.Remedy = "create the directory " + filepath.Dir(path) + " first"
	}
	return e
}

// foreign refuses what is plainly no store before anything is written to it, or
// beside it.
func (s *Store) foreign() error {
	refuse := func(remedy, why string) error {
		return fmt.Errorf("open store: %w", &FileError{Path: s.path, Kind: ErrNotStore, Remedy: remedy, Err: errors.New(why)})
	}
	info, err := os.Stat(s.path)
	switch {
	case err != nil:
		return nil //nolint:nilerr // opening it tells
	case info.IsDir():
		return refuse("name a file", "it is a directory")
	}
	head, err := header(s.path)
	switch {
	case err != nil:
		return nil //nolint:nilerr // opening it tells
	case len(head) == 0:
		return nil // it is new
	case !bytes.HasPrefix(head, []byte("SQLite format 3\x00")):
		return refuse("name another file, or move this one away", "it is no database")
	case len(head) < headerSize || binary.BigEndian.Uint32(head[68:]) == applicationID:
		return nil
	}
	page := int64(binary.BigEndian.Uint16(head[16:]))
	if page == 1 {
		page = 1 << 16
	}
	if log, err := os.Stat(s.path + "-wal"); info.Size() <= page || err == nil && log.Size() > 0 {
		return nil // it has no tables, or the log knows better
	}
	return refuse("name another file", "it is a database of another program")
}

// headerSize is the size of what SQLite says of itself in a file.
const headerSize = 100

// header reads the beginning of a file.
func header(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	head := make([]byte, headerSize)
	n, err := io.ReadFull(file, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return head[:n], err
}

// connect opens the two pools: the writer, which has one connection, and the
// readers.
func (s *Store) connect(ctx context.Context) error {
	busy := strconv.FormatInt(s.opts.BusyTimeout.Milliseconds(), 10)
	writer, err := sql.Open("sqlite", s.dsn(url.Values{
		"_txlock": {"immediate"}, "_busy_timeout": {busy}, "_auto_vacuum": {"incremental"}, "_foreign_keys": {"1"},
		"_journal_mode": {"WAL"}, "_synchronous": {"FULL"}, "_pragma": {"cache_size(-16384)", "journal_size_limit(67108864)", "secure_delete(1)"}, // what was deleted is not left in the file
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
