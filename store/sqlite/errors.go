package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/record"
)

// These errors are the problems of a file, for errors.Is.
var (
	// ErrFull means that the file cannot grow: the disk is full, a quota is used up, or the
	// process has reached its file size limit. The current write is not stored. Earlier
	// writes are stored and can be read.
	ErrFull = errors.New("sqlite: no disk space left")
	// ErrReadOnly means that the file or its directory is not writable.
	ErrReadOnly = errors.New("sqlite: the file cannot be written")
	// ErrLocked means that another program has the file locked.
	ErrLocked = errors.New("sqlite: the file is locked")
	// ErrCorrupt means that the file is damaged.
	ErrCorrupt = errors.New("sqlite: the file is damaged")
	// ErrReplaced means that another program removed or replaced the file, or its
	// log, while the store was open. The current write is not stored.
	ErrReplaced = errors.New("sqlite: the file was removed or replaced")
	// ErrNotStore means that the file is not a store: it is not a database, or it is a
	// database of another program.
	ErrNotStore = errors.New("sqlite: the file is not a Belay store")
	// ErrNewer means that a newer version of Belay has written the file.
	ErrNewer = errors.New("sqlite: the file was written by a newer version of Belay")
	// ErrOlder means that a process with an older version of Belay has the file open. That
	// version must not use the tables after this version has migrated them.
	ErrOlder = errors.New("sqlite: an older version of Belay has the file open")
)

// FileError is a problem of the file, with advice.
type FileError struct {
	Path string
	// Kind is one of the errors above, such as ErrFull, or nil.
	Kind error
	// Remedy says what to do.
	Remedy string
	Err    error
}

func (e *FileError) Error() string {
	text := e.Path + ": "
	if e.Kind != nil {
		text += e.Kind.Error() + ": "
	}
	text += e.Err.Error()
	if e.Remedy != "" {
		text += " (" + e.Remedy + ")"
	}
	return text
}

// Unwrap returns the kind and the cause.
func (e *FileError) Unwrap() []error {
	if e.Kind == nil {
		return []error{e.Err}
	}
	return []error{e.Kind, e.Err}
}

// explain adds the path and advice to an error of SQLite. It does not change errors that
// callers check with errors.Is.
func (s *Store) explain(err error) error {
	if err == nil || record.IsRefusal(err) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if _, ok := errors.AsType[*FileError](err); ok {
		return err
	}
	if errors.Is(err, record.ErrUnreadable) || strings.Contains(err.Error(), "sql: Scan error") { // database/sql exports no value for this error
		return s.damaged(err)
	}
	found, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return s.closedBy(err)
	}
	e := &FileError{Path: s.path, Err: err}
	switch code := found.Code(); code & 0xff {
	case codes.SQLITE_FULL:
		e.Kind, e.Remedy = ErrFull, nothingStored+"free some space and try again"
	case codes.SQLITE_READONLY:
		if s.opts.ReadOnly {
			return s.refusal()
		}
		e.Kind, e.Remedy = ErrReadOnly, "check the permissions of the file and of "+filepath.Dir(s.path)+", and that the file system is not read-only"
	case codes.SQLITE_CANTOPEN, codes.SQLITE_PERM, codes.SQLITE_AUTH:
		if full := s.cannotGrow(err); full != nil {
			return full
		}
		e.Kind, e.Remedy = ErrReadOnly, "check that the directory "+filepath.Dir(s.path)+" exists and is writable"
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED:
		e.Kind, e.Remedy = ErrLocked, fmt.Sprintf("another program has locked the file for longer than %s: end that program, or increase BusyTimeout", s.opts.BusyTimeout)
	case codes.SQLITE_CORRUPT:
		return s.damaged(err)
	case codes.SQLITE_NOTADB:
		return s.noStore("use another file, or move this file away", err)
	case codes.SQLITE_IOERR:
		switch code {
		case codes.SQLITE_IOERR_SHORT_READ, codes.SQLITE_IOERR_CORRUPTFS: // the file ends too early
			return s.damaged(err)
		case codes.SQLITE_IOERR_READ:
		default:
			if full := s.cannotGrow(err); full != nil {
				return full
			}
		}
		e.Remedy = "the disk failed to read or write; check the system's log"
	}
	return e
}

// closedBy returns belay.ErrClosed if err occurred because the store is closed, and
// otherwise err.
func (s *Store) closedBy(err error) error {
	select {
	case <-s.closed:
		// database/sql exports no value for the second error.
		if errors.Is(err, sql.ErrConnDone) || strings.Contains(err.Error(), "sql: database is closed") {
			return fmt.Errorf("%s: %w", s.path, belay.ErrClosed)
		}
	default:
	}
	return err
}
