package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// writing is an open transaction, with its queries. River uses tx directly.
type writing struct {
	*table.Queries
	pipe *pipe
	tx   pgx.Tx
	runs bool // the journal has new or changed runs
	// wrote means that the transaction has written, so it already has a number (see
	// numbered).
	wrote bool
	// touched is what has no entry in the audit chain yet. lane is the lane of the
	// transaction's entries, or nil, and began is the lane before the transaction.
	touched touched
	lane    *lane
	began   lane
	store   *Store
	// sessions maps the keys of the jobs to their sessions, see insertJobs.
	sessions map[string]string
}

// submit calls do in a transaction. It returns when the write is durable or rejected. If
// the context ends while the write waits for a connection, submit withdraws the write. If
// the write has begun, it is completed. If the server aborts the transaction before the
// commit, submit calls do again, so do must be repeatable.
func (s *Store) submit(ctx context.Context, do func(ctx context.Context, w *writing) error) error {
	for attempt := 1; ; attempt++ {
		again, err := s.transact(ctx, do)
		if !again || attempt == attempts {
			return s.explain(err)
		}
	}
}

// transact makes one attempt at a write. again means that nothing was stored and that a
// retry can succeed.
func (s *Store) transact(ctx context.Context, do func(ctx context.Context, w *writing) error) (again bool, err error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return isDropped(err), record.Cause(ctx, err)
	}
	defer func() { _ = conn.Close() }() // the pool detects broken connections
	var wire *pgx.Conn
	if err := conn.Raw(func(c any) error {
		wire = c.(*stdlib.Conn).Conn()
		return nil
	}); err != nil {
		return isDropped(err), fmt.Errorf("begin: %w", err)
	}
	ctx = context.WithoutCancel(ctx)
	tx, err := wire.Begin(ctx)
	if err != nil { // this includes a server that does not answer; the pool then opens new connections
		return isDropped(err), fmt.Errorf("begin: %w", err)
	}
	expired := s.bound(wire)
	defer func() { again, err = s.inTime(expired(), again, err) }()
	w := &writing{pipe: &pipe{bound: s.bind(conn), tx: tx}, tx: tx, store: s}
	w.Queries = table.New(w.pipe)
	if err := w.perform(ctx, do); err != nil {
		_ = tx.Rollback(ctx) // if this fails, the pool closes the connection, which also rolls back
		w.unlink(false, true)
		return isDropped(err) || isCrossed(err), err
	}
	if err := tx.Commit(ctx); err != nil {
		w.unlink(false, isCrossed(err))
		return isCrossed(err), fmt.Errorf("commit: %w", err)
	}
	w.unlink(true, true)
	s.transactions.Add(1)
	if w.runs {
		s.stirred.broadcast()
	}
	return false, nil
}

// bound makes the connection fail when a write takes longer than Options.Timeout. The
// returned function stops the timer and reports whether the time was over. A context for
// each request would need a goroutine for each request.
func (s *Store) bound(wire *pgx.Conn) (expired func() bool) {
	socket := wire.PgConn().Conn()
	fails := time.AfterFunc(s.opts.Timeout, func() { _ = socket.SetDeadline(time.Unix(1, 0)) })
	return func() bool {
		if fails.Stop() {
			return false
		}
		_ = socket.Close() // the pool must not use the connection again
		return true
	}
}

// inTime returns the result of a write. A write that succeeded exactly at its timeout
// counts as successful.
func (s *Store) inTime(expired, again bool, err error) (bool, error) {
	if !expired || err == nil {
		return again, err
	}
	return false, fmt.Errorf("the write took longer than %s: %w: %w", s.opts.Timeout, ErrUnreachable, err)
}

// perform calls a write's function and sends the buffered statements. If the function
// panics, perform returns an error.
func (w *writing) perform(ctx context.Context, do func(context.Context, *writing) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a write panicked: %v\n%s", p, debug.Stack())
		}
	}()
	if err = do(ctx, w); err == nil {
		w.link()
		_, err = w.pipe.flush(ctx)
	}
	if w.pipe.failed != nil {
		return w.pipe.failed // the first error; later statements failed because of it
	}
	return err
}

// look runs f on one snapshot of the database.
func (s *Store) look(ctx context.Context, f func(q *table.Queries) error) error {
	return s.snapshot(ctx, func(tx *sql.Tx) error { return f(table.New(s.bind(tx))) })
}

// Commit stores all of c or nothing. It returns when the data is on the server's disk.
func (s *Store) Commit(ctx context.Context, c *belay.Commit) error {
	rows, err := record.NewCommit(c, s.id, s.now())
	if err == nil {
		err = s.submit(ctx, func(ctx context.Context, w *writing) error {
			hash, granted := s.granted.Changed(rows)
			if granted {
				if err := w.touched.lines.GrantsFound(ctx, w.Queries, rows.Session()); err != nil {
					return err
				}
				w.touched.lines.Grants(rows.Session(), hash)
			}
			if err := rows.Put(ctx, w.Queries); err != nil {
				return err
			}
			w.wrote = true // Put has written, see numbered
			w.touched.approvals = append(w.touched.approvals, rows.Approvals...)
			if err := w.appendRuns(ctx, rows.Runs); err != nil {
				return err
			}
			return s.insertJobs(ctx, w, rows.Jobs)
		})
	}
	if err != nil {
		return fmt.Errorf("commit to session %q with epoch %d: %w", c.Session, c.Epoch, err)
	}
	s.granted.Stored(c.Session, rows)
	s.commits.Add(1)
	if rows.Watched.After(s.now()) {
		s.ring(ctx, sessionChannel, c.Session)
	}
	return nil
}

// Decide stores the decision of a pending approval. An approval is decided only once. With
// ErrDecided, ErrWrongHash and ErrExpired, Decide also returns the stored approval. An
// approval expires when the store's clock reaches Expires. If a queued turn waits for the
// approval, the turn becomes due.
func (s *Store) Decide(ctx context.Context, d belay.Decision) (belay.Approval, error) {
	var decided belay.Approval
	var woken bool
	err := s.submit(ctx, func(ctx context.Context, w *writing) error {
		// Concurrent decisions about the same approval wait here, and then see the first
		// decision.
		_, err := w.tx.Exec(ctx, "SELECT 1 FROM approvals WHERE id = $1 FOR UPDATE", clean([]any{d.Approval})...)
		if err != nil {
			return err //nolint:wrapcheck // said below
		}
		if decided, err = record.Decide(ctx, w.Queries, d, s.now(), w.touched.lines.ApprovalFound); err == nil {
			w.touched.approvals = append(w.touched.approvals, d.Approval)
			woken, err = record.Wake(ctx, w.Queries, decided.Session, s.now())
		}
		return err
	})
	if err != nil {
		return decided, fmt.Errorf("decide %w", err)
	}
	if woken {
		s.ring(ctx, turnChannel, "")
	}
	return decided, nil
}

// broadcast wakes all waiters.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

// wait returns a channel that is closed at the next broadcast.
func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *broadcast) broadcast() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

var errUnstorable = errors.New("it must be UTF-8 text without NUL characters")
