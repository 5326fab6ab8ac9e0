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

// writing is a transaction that is being written, with its queries. River uses
// tx directly.
type writing struct {
	*table.Queries
	pipe *pipe
	tx   pgx.Tx
	runs bool // something was appended to the journal
	// wrote means that the transaction has written, so it has a number.
	wrote bool
	// sessions maps the keys of the stored jobs to their sessions.
	sessions map[string]string
}

// submit calls do in a transaction and returns when it is durable, or rejected. A
// context that ends while the write waits for a connection withdraws it; a started
// write is completed. If the server aborts it before the commit, it is repeated
// from the beginning, so do must be repeatable.
func (s *Store) submit(ctx context.Context, do func(ctx context.Context, w *writing) error) error {
	for attempt := 1; ; attempt++ {
		again, err := s.transact(ctx, do)
		if !again || attempt == attempts {
			return s.explain(err)
		}
	}
}

// transact makes one attempt at a write. It reports whether the write can be
// retried: nothing was stored, and it was not rejected.
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
	if err != nil { // also if the server does not answer within Options.Timeout: the pool then opens new connections
		return isDropped(err), fmt.Errorf("begin: %w", err)
	}
	expired := s.bound(wire)
	defer func() { again, err = s.inTime(expired(), again, err) }()
	w := &writing{pipe: &pipe{bound: s.bind(conn), tx: tx}, tx: tx}
	w.Queries = table.New(w.pipe)
	if err := w.perform(ctx, do); err != nil {
		_ = tx.Rollback(ctx) // if this fails, the pool closes the connection, which also rolls back
		return isDropped(err) || isCrossed(err), err
	}
	if err := tx.Commit(ctx); err != nil {
		return isCrossed(err), fmt.Errorf("commit: %w", err)
	}
	s.transactions.Add(1)
	if w.runs {
		s.stirred.broadcast()
	}
	return false, nil
}

// bound makes a connection fail when a write takes too long. The returned function
// ends that and reports whether the write timed out. A context would do the same, at
// the cost of a goroutine per request.
func (s *Store) bound(wire *pgx.Conn) (expired func() bool) {
	socket := wire.PgConn().Conn()
	fails := time.AfterFunc(s.opts.Timeout, func() { _ = socket.SetDeadline(time.Unix(1, 0)) })
	return func() bool {
		if fails.Stop() {
			return false
		}
		_ = socket.Close() // so that it does not return to the pool
		return true
	}
}

// inTime returns the result of a write. A write that succeeded just when it timed
// out counts as a success.
func (s *Store) inTime(expired, again bool, err error) (bool, error) {
	if !expired || err == nil {
		return again, err
	}
	return false, fmt.Errorf("the write took longer than %s: %w: %w", s.opts.Timeout, ErrUnreachable, err)
}

// perform calls a write's function and sends the buffered statements. A panic
// becomes the error of this write.
func (w *writing) perform(ctx context.Context, do func(context.Context, *writing) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a write panicked: %v\n%s", p, debug.Stack())
		}
	}()
	if err = do(ctx, w); err == nil {
		_, err = w.pipe.flush(ctx)
	}
	if w.pipe.failed != nil {
		return w.pipe.failed // later statements failed for the same reason
	}
	return err
}

// look runs f on one snapshot.
func (s *Store) look(ctx context.Context, f func(q *table.Queries) error) error {
	var tx *sql.Tx
	err := s.persist(ctx, func() (err error) {
		tx, err = s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
		return err //nolint:wrapcheck // the caller adds context
	})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // a read has nothing to commit
	return f(table.New(s.bind(tx)))
}

// Commit writes all of c or nothing. It returns when the data is on the server's
// disk.
func (s *Store) Commit(ctx context.Context, c *belay.Commit) error {
	rows, err := record.NewCommit(c, s.id, s.now())
	if err == nil {
		err = s.submit(ctx, func(ctx context.Context, w *writing) error {
			if err := rows.Put(ctx, w.Queries); err != nil {
				return err
			}
			w.wrote = true // the commit has locked the session
			if err := w.appendRuns(ctx, rows.Runs); err != nil {
				return err
			}
			return s.insertJobs(ctx, w, rows.Jobs)
		})
	}
	if err != nil {
		return fmt.Errorf("commit to session %q with epoch %d: %w", c.Session, c.Epoch, err)
	}
	s.commits.Add(1)
	if rows.Watched.After(s.now()) {
		s.ring(ctx, sessionChannel, c.Session)
	}
	return nil
}

// Decide stores the decision of a pending approval, once. With ErrDecided,
// ErrWrongHash and ErrExpired it also returns the current approval. An approval
// expires when the store's clock reaches Expires. If a queued turn waits for the
// approval, it becomes due.
func (s *Store) Decide(ctx context.Context, d belay.Decision) (belay.Approval, error) {
	var decided belay.Approval
	var woken bool
	err := s.submit(ctx, func(ctx context.Context, w *writing) error {
		// Concurrent decisions about the same approval wait here, and then see the
		// first one.
		_, err := w.tx.Exec(ctx, "SELECT 1 FROM approvals WHERE id = $1 FOR UPDATE", clean([]any{d.Approval})...)
		if err != nil {
			return err //nolint:wrapcheck // said below
		}
		if decided, err = record.Decide(ctx, w.Queries, d, s.now()); err == nil {
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

// wait returns a channel that is closed at the next change.
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

var errUnstorable = errors.New("it must be UTF-8 without NUL")
