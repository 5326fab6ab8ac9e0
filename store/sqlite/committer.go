package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/table"
)

// committer is the one that writes. Writes that wait while it commits are joined
// in its next transaction, so that a disk that takes its time takes it once for all of
// them. Each is undone alone if it is refused.
type committer struct {
	store *Store

	mu      sync.Mutex
	waiting []*request
	closed  bool
	wake    chan struct{} // has room for one
	ended   chan struct{}

	// lockedOut is when the committer last gave up because another program had locked
	// the file. It is zero after a transaction could begin. Only the committer's
	// goroutine uses it.
	lockedOut time.Time

	commits      atomic.Int64
	transactions atomic.Int64
}

// request is a write with a waiting caller.
type request struct {
	ctx   context.Context //nolint:containedctx // it lives as long as the call that made it
	do    func(ctx context.Context, w *writing) error
	done  chan error
	since time.Time // when it was made
	// taken is set by the committer when it begins, or by the caller who withdraws.
	taken atomic.Bool
}

// writing is a transaction that is being written, with the queries in it.
type writing struct {
	*table.Queries
	tx   *sql.Tx
	runs bool // something was appended to the journal
	// sessions are those of the jobs that are being stored, by their keys.
	sessions map[string]string
}

// submit has do called in a transaction and returns when it is durable, or
// refused. A context that ends while the write waits in line withdraws it; when it is
// being written it is seen through.
func (s *Store) submit(ctx context.Context, do func(ctx context.Context, w *writing) error) error {
	return s.submitSince(ctx, time.Now(), do)
}

// submitSince is submit for a caller that has already waited for the file.
func (s *Store) submitSince(ctx context.Context, since time.Time, do func(ctx context.Context, w *writing) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r := &request{ctx: context.WithoutCancel(ctx), do: do, done: make(chan error, 1), since: since}
	if !s.committer.add(r) {
		return fmt.Errorf("%s: %w", s.path, belay.ErrClosed)
	}
	select {
	case err := <-r.done:
		return s.explain(err)
	case <-ctx.Done():
		if r.taken.CompareAndSwap(false, true) {
			return context.Cause(ctx)
		}
		return s.explain(<-r.done)
	}
}

// add puts a request in line, unless the committer is closed.
func (c *committer) add(r *request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.waiting = append(c.waiting, r)
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return true
}

// close lets what waits be written and returns when the committer has ended.
func (c *committer) close() {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.wake)
	}
	c.mu.Unlock()
	<-c.ended
}

// work writes until the committer is closed. It is the committer's goroutine,
// begun by Open.
func (c *committer) work() {
	defer close(c.ended)
	for range c.wake {
		c.batch()
	}
	c.batch() // what came before it was closed
}

// take returns the requests that wait.
func (c *committer) take() []*request {
	c.mu.Lock()
	waiting := c.waiting
	c.waiting = nil
	c.mu.Unlock()
	batch := waiting[:0]
	for _, r := range waiting {
		if r.taken.CompareAndSwap(false, true) {
			batch = append(batch, r)
		}
	}
	return batch
}

// batch writes what waits in one transaction.
func (c *committer) batch() {
	batch := c.take()
	if len(batch) == 0 {
		return
	}
	told := make([]error, len(batch))
	if err := c.transact(batch, told); err != nil {
		for i := range told {
			if told[i] == nil {
				told[i] = err
			}
		}
	}
	for i, r := range batch {
		r.done <- told[i]
	}
}

// transact writes a batch and commits it. Errors of single requests are in told;
// an error of the transaction is for all.
func (c *committer) transact(batch []*request, told []error) (err error) {
	ctx := context.Background()
	tx, err := c.begin(ctx, batch[0].since)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback() // SQLite may have done so already
		}
	}()
	w := &writing{Queries: c.store.write.WithTx(tx), tx: tx}
	accepted := 0
	for i, r := range batch {
		if len(batch) == 1 { // it is undone with the transaction
			told[i] = perform(r, w)
		} else if told[i], err = c.apart(ctx, r, w); err != nil {
			return err
		}
		if told[i] == nil {
			accepted++
		}
	}
	if accepted == 0 {
		return errors.Join(tx.Rollback(), errNothing)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	c.transactions.Add(1)
	if w.runs {
		c.store.stirred.broadcast()
	}
	return nil
}

// begin begins a transaction for those who have waited since then. First it looks
// whether the files are still there: what is committed to a file that was removed is
// lost.
//
// Another program may have locked the file. A write waits for that lock no longer than
// Options.BusyTimeout in total. SQLite waits only for a moment at a time, because the job
// queue shares the connection and must not block it for long. After a write has given up,
// the next ones try only once for as long as BusyTimeout: a turn that ends makes several
// writes, and they must not each wait anew.
func (c *committer) begin(ctx context.Context, since time.Time) (*sql.Tx, error) {
	s := c.store
	for {
		if err := s.files.inPlace(); err != nil {
			return nil, err
		}
		tx, err := s.writer.BeginTx(ctx, nil)
		switch {
		case !isBusy(err):
			c.lockedOut = time.Time{}
			return tx, err //nolint:wrapcheck // transact adds context
		case time.Since(since) >= s.opts.BusyTimeout, time.Since(c.lockedOut) < s.opts.BusyTimeout:
			c.lockedOut = time.Now()
			return nil, err //nolint:wrapcheck // likewise
		}
	}
}

func isBusy(err error) bool {
	found, ok := errors.AsType[*sqlite.Error](err)
	return ok && found.Code()&0xff == codes.SQLITE_BUSY
}

// errNothing rolls back a batch in which every request has its own error. It is
// not returned to callers.
var errNothing = errors.New("nothing was accepted")

// apart performs a request so that it can be undone alone. The second error is
// the transaction's: it was rolled back.
func (c *committer) apart(ctx context.Context, r *request, w *writing) (refused, err error) {
	if err := c.store.point(ctx, w.tx, c.store.savepoint); err != nil {
		return nil, fmt.Errorf("savepoint: %w", err)
	}
	runs := w.runs
	if refused = perform(r, w); refused != nil {
		w.runs = runs
		if err := c.store.point(ctx, w.tx, c.store.undo); err != nil {
			return refused, fmt.Errorf("another write took this one along: %w", refused)
		}
	}
	if err := c.store.point(ctx, w.tx, c.store.release); err != nil {
		return refused, fmt.Errorf("release: %w", err)
	}
	return refused, nil
}

// perform calls a request's function. A panic is its caller's to hear of, and
// not the end of everybody's writing.
func perform(r *request, w *writing) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a write panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return r.do(r.ctx, w)
}

// point moves a savepoint.
func (s *Store) point(ctx context.Context, tx *sql.Tx, stmt *sql.Stmt) error {
	_, err := tx.StmtContext(ctx, stmt).ExecContext(ctx) //nolint:sqlclosecheck // the transaction closes it
	return err                                           //nolint:wrapcheck // the caller adds context
}

// Stats counts what a store has written since it was opened.
type Stats struct {
	// Commits counts the calls of Commit that were stored.
	Commits int64
	// Transactions counts the transactions that were committed, each of which
	// waits for the disk once. Those of the job queue's own upkeep are not among them.
	Transactions int64
}

// Stats returns what the store has written since it was opened.
func (s *Store) Stats() Stats {
	return Stats{Commits: s.committer.commits.Load(), Transactions: s.committer.transactions.Load()}
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
