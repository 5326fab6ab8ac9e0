package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/record"
)

// These errors are the problems of a server, for errors.Is.
var (
	// ErrUnreachable means that the store has no connection: the server is down, is
	// starting or stopping, cannot be reached, or has no free connection.
	ErrUnreachable = errors.New("postgres: the server cannot be reached")
	// ErrRefused means that the server denies access or a needed permission.
	ErrRefused = errors.New("postgres: the server denies access")
	// ErrFull means that the server's disk is full. The current write is not stored.
	// Earlier writes are stored.
	ErrFull = errors.New("postgres: the server's disk is full")
	// ErrReadOnly means that the server does not accept writes, for example because it is a
	// standby.
	ErrReadOnly = errors.New("postgres: the server is read-only")
	// ErrCorrupt means that data on the server is damaged.
	ErrCorrupt = errors.New("postgres: the database is damaged")
	// ErrNotStore means that another program has tables in the database with the same names
	// as Belay's tables.
	ErrNotStore = errors.New("postgres: the database is not a Belay store")
	// ErrNewer means that a newer version of Belay has created or changed the tables.
	ErrNewer = errors.New("postgres: a newer version of Belay has changed the tables")
	// ErrOlder means that a process with an older version of Belay is running. That version
	// must not use the tables after this version has migrated them.
	ErrOlder = errors.New("postgres: an older version of Belay is running")
)

// ServerError is a problem of the server, with advice.
type ServerError struct {
	// Database names the database and the server, without a password.
	Database string
	// Kind is one of the errors above, such as ErrFull, or nil.
	Kind error
	// Remedy says what to do.
	Remedy string
	Err    error
}

func (e *ServerError) Error() string {
	text := e.Database + ": "
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
func (e *ServerError) Unwrap() []error {
	if e.Kind == nil {
		return []error{e.Err}
	}
	return []error{e.Kind, e.Err}
}

// explain adds the database and advice to an error of the server. It does not change errors
// that callers check with errors.Is.
func (s *Store) explain(err error) error {
	if err == nil || record.IsRefusal(err) {
		return err
	}
	if _, ok := errors.AsType[*ServerError](err); ok {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) && !isUnconnected(err) {
		return err // the caller's own deadline has passed
	}
	e := &ServerError{Database: s.name, Err: err}
	if errors.Is(err, record.ErrUnreadable) {
		e.Kind, e.Remedy = ErrCorrupt, remedyCorrupt
		return e
	}
	found, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok:
		e.Remedy, e.Kind = meaning(found)
	case isClosed(err):
		select {
		case <-s.closed:
			return fmt.Errorf("%s: %w", s.name, belay.ErrClosed)
		default:
			e.Kind = ErrUnreachable
		}
	case isCut(err):
		e.Kind, e.Remedy = ErrUnreachable, "check that the server is running and reachable; the store reconnects automatically"
	default:
		return err
	}
	return e
}

// meaning returns advice and the kind of a server error, by its SQLSTATE.
func meaning(err *pgconn.PgError) (remedy string, kind error) {
	switch code := err.Code; {
	case strings.HasPrefix(code, "57P"), strings.HasPrefix(code, "08"): // the server stops or starts, or the connection failed
		return "the server is stopping, is starting or has closed the connection; the store reconnects automatically", ErrUnreachable
	case code == "53300":
		return "the server has no free connection: increase max_connections of the server, or decrease MaxConns", ErrUnreachable
	case strings.HasPrefix(code, "28"):
		return "check the user and the password of the DSN, and the server's pg_hba.conf", ErrRefused
	case code == "3D000":
		return "create the database first", ErrRefused
	case code == "42501":
		return "the user needs permission to create and write tables; on PostgreSQL 15 and later: GRANT CREATE ON SCHEMA public", ErrRefused
	case code == "53100":
		return "this write was not stored; free some space and try again", ErrFull
	case code == "53200":
		return "this write was not stored; the server is out of memory: give the server more memory, or decrease its max_connections", nil
	case code == "XX001", code == "XX002":
		return remedyCorrupt, ErrCorrupt
	case code == "25006":
		return "use the primary server in the DSN; if the DSN has several hosts, add target_session_attrs=read-write", ErrReadOnly
	case code == "57014":
		return "the server cancelled the request, because it took longer than the server or Options.Timeout allows", nil
	default:
		return "", nil
	}
}

const remedyCorrupt = "read the server's log and keep a copy of its files; then restore a backup, or save the readable data with pg_dump"

// isCut reports whether err means that the connection failed.
func isCut(err error) bool {
	if found, ok := errors.AsType[*pgconn.PgError](err); ok {
		return strings.HasPrefix(found.Code, "57P") || strings.HasPrefix(found.Code, "08")
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return isUnconnected(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err) || strings.Contains(err.Error(), "conn closed")
}

// isUnconnected reports whether no connection could be opened. Then an immediate retry is
// useless.
func isUnconnected(err error) bool {
	_, ok := errors.AsType[*pgconn.ConnectError](err)
	return ok
}

// isDropped reports whether an open connection failed. Then a retry on another connection
// can succeed.
func isDropped(err error) bool { return err != nil && isCut(err) && !isUnconnected(err) }

// attempts is how often a write is tried after a conflict or a lost connection. After a
// restart of the server, every connection of the pool may be dead. The pool checks only
// connections that were idle for a second.
const attempts = 20

// persist calls do again if its connection was dropped. The time limit is one and a half
// times Options.Timeout, so that do runs again after one timeout.
func (s *Store) persist(ctx context.Context, do func() error) error {
	began := time.Now()
	for n := 1; ; n++ {
		err := do()
		if !isDropped(err) || n == attempts || ctx.Err() != nil || time.Since(began) > s.opts.Timeout*3/2 {
			return err
		}
	}
}

// outlast calls do again, with pauses, as long as fails returns true, but not longer than
// atMost. do must be idempotent.
func (s *Store) outlast(ctx context.Context, atMost time.Duration, fails func(error) bool, do func() error) error {
	began := time.Now()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := do()
		if err == nil || !fails(err) || time.Since(began)+pause > atMost {
			return err
		}
		if s.await(ctx, nil, pause) != nil { // the context or the store has ended
			return err
		}
	}
}

// These are the limits of the pause between two attempts.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = time.Second
)

// isClosed reports whether a pool was closed.
func isClosed(err error) bool {
	return errors.Is(err, sql.ErrConnDone) || strings.Contains(err.Error(), "closed pool") || strings.Contains(err.Error(), "sql: database is closed")
}

// isCrossed reports whether the server aborted a transaction because of a conflict. Then a
// retry can succeed.
func isCrossed(err error) bool {
	found, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (found.Code == "40001" || found.Code == "40P01")
}
