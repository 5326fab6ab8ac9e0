package sqlite

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// find returns the canonical path of an existing file.
func find(path string) (string, error) {
	path, err := named(path)
	if err != nil {
		return "", err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", fmt.Errorf("open store: %w", err)
	}
	return path, nil
}

// openToRead opens the file read-only. It does not clean up or migrate. It also opens a
// damaged file, so that the readable part can be read.
func (s *Store) openToRead(ctx context.Context) error {
	if err := s.use(s.foreign); err != nil {
		return err
	}
	mine := s.alone && !s.lively()
	if mine {
		s.lost = s.checkLog()
	}
	s.files.note()
	s.opts.mode = "ro"
	err := s.connectToRead(ctx, url.Values{"_query_only": {"1"}})
	if err != nil && !isDamage(err) && !errors.Is(err, ErrLocked) && mine && s.lost == nil {
		// Possibly the disk has no space for the index of the log. SQLite needs no index if
		// it has exclusive access.
		_ = s.reader.Close() // the first attempt failed
		s.opts.mode = "rw"
		err = s.connectToRead(ctx, url.Values{"_query_only": {"1"}, "_pragma": {"locking_mode(EXCLUSIVE)"}})
		s.reader.SetMaxOpenConns(1)
	}
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	if err := s.known(ctx); err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	s.writer = s.reader // its connections reject writes
	if err := s.prepare(ctx); err != nil {
		return err
	}
	return s.openQueue(ctx)
}

// connectToRead opens the readers' pool and reads from the file once.
func (s *Store) connectToRead(ctx context.Context, settings url.Values) error {
	s.reader = s.pool(settings, false)
	var tables int64
	return s.explain(s.reader.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables))
}

// known returns an error if this version of Belay cannot read the tables.
func (s *Store) known(ctx context.Context) error {
	_, newest, err := s.migrations()
	if err != nil {
		return err
	}
	var stored int64
	if err := s.reader.QueryRowContext(ctx, "SELECT max(version_id) FROM "+versionTable).Scan(&stored); err != nil {
		return s.explain(record.Cause(ctx, err))
	}
	s.migrated = [2]int64{stored, stored}
	switch {
	case stored < newest:
		return &FileError{Path: s.path, Remedy: "open the store once without ReadOnly, which migrates it", Err: fmt.Errorf("the tables have version %d, but version %d is needed", stored, newest)}
	case stored > newest && !record.Readable(ctx, table.New(s.reader), record.Oldest, newest):
		return s.newer(stored, newest)
	default:
		return nil
	}
}

// refusal returns the error for a write to a read-only store.
func (s *Store) refusal() *FileError {
	return &FileError{Path: s.path, Kind: ErrReadOnly, Err: errors.New("the store was opened read-only")}
}
