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
	"github.com/belay-run/belay/hook"
)

// What can be wrong with the file, for errors.Is.
var (
	// ErrFull says that there is no room on the disk. What was being written is
	// not stored, all that was written before is.
	ErrFull = errors.New("sqlite: the disk is full")
	// ErrReadOnly says that the file, or its directory, cannot be written.
	ErrReadOnly = errors.New("sqlite: the file cannot be written")
	// ErrLocked says that another program has the file locked.
	ErrLocked = errors.New("sqlite: the file is locked")
	// ErrCorrupt says that the file is damaged.
	ErrCorrupt = errors.New("sqlite: the file is damaged")
	// ErrNotStore says that the file is no store: no database, or another
	// program's.
	ErrNotStore = errors.New("sqlite: the file is no store of Belay")
	// ErrNewer says that a newer version of Belay has written the file.
	ErrNewer = errors.New("sqlite: the file is of a newer version")
)

// FileError is an error of the file, with what to do about it.
type FileError struct {
	Path string
	// Kind is one of the errors above, or nil.
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

// explain names the file and says what to do about an error of SQLite. Errors
// that callers ask about are left as they are.
func (s *Store) explain(err error) error {
	if err == nil || isRefusal(err) {
		return err
	}
	if _, ok := errors.AsType[*FileError](err); ok {
		return err
	}
	found, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return s.closedBy(err)
	}
	e := &FileError{Path: s.path, Err: err}
	switch found.Code() & 0xff {
	case codes.SQLITE_FULL:
		e.Kind, e.Remedy = ErrFull, "nothing of this was stored; free some space and try again"
	case codes.SQLITE_READONLY:
		e.Kind, e.Remedy = ErrReadOnly, "check the permissions of the file and of "+filepath.Dir(s.path)+", and that the file system is not read-only"
	case codes.SQLITE_CANTOPEN, codes.SQLITE_PERM, codes.SQLITE_AUTH:
		e.Kind, e.Remedy = ErrReadOnly, "check that the directory "+filepath.Dir(s.path)+" exists and may be written"
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED:
		e.Kind, e.Remedy = ErrLocked, fmt.Sprintf("another program has held it for longer than %s; end it, or raise BusyTimeout", s.opts.BusyTimeout)
	case codes.SQLITE_CORRUPT:
		e.Kind, e.Remedy = ErrCorrupt, "keep a copy, then restore a backup or save what can be read: sqlite3 FILE .recover"
	case codes.SQLITE_NOTADB:
		e.Kind, e.Remedy = ErrNotStore, "name another file, or move this one away"
	case codes.SQLITE_IOERR:
		e.Remedy = "the disk failed to read or write; look at the system's log"
	}
	return e
}

// closedBy says that the store was closed, if that is what an error comes from.
func (s *Store) closedBy(err error) error {
	select {
	case <-s.closed:
		// database/sql has no name for it.
		if errors.Is(err, sql.ErrConnDone) || strings.Contains(err.Error(), "sql: database is closed") {
			return fmt.Errorf("%s: %w", s.path, belay.ErrClosed)
		}
	default:
	}
	return err
}

// isRefusal reports whether an error is an answer that callers ask about, and no
// failure of the file.
func isRefusal(err error) bool {
	for _, answer := range []error{
		belay.ErrHeld, belay.ErrFenced, belay.ErrConflict, belay.ErrNotFound, belay.ErrDecided, belay.ErrWrongHash, belay.ErrExpired, belay.ErrClosed,
		hook.ErrSettled, hook.ErrQueueFull, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, answer) {
			return true
		}
	}
	return false
}
