package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/audit"
	"github.com/belay-run/belay/store/internal/chain"
	"github.com/belay-run/belay/store/internal/table"
)

// committer is the only writer. While it commits, new writes wait in its queue. Then it
// writes many of them in one transaction, so that they share one disk flush. If one write
// is rejected, only that write is rolled back.
//
// A transaction has at most batchSize writes. If more wait, turns that have begun go
// before new turns. Otherwise all turns of a busy process would advance at the same
// speed, and none of them would end early.
type committer struct {
	store *Store

	mu      sync.Mutex
	waiting []*request
	closed  bool
	wake    chan struct{} // capacity 1
	ended   chan struct{}

	// lockedOut is the last time that a write failed because another program had locked the
	// file. It becomes zero when a transaction begins. Only the committer's goroutine uses
	// lockedOut.
	lockedOut time.Time

	head audit.Entry // see link

	commits      atomic.Int64
	transactions atomic.Int64
}

// request is a write whose caller waits.
type request struct {
	ctx   context.Context //nolint:containedctx // it lives as long as the call that made it
	do    func(ctx context.Context, w *writing) error
	done  chan error
	since time.Time // when the caller began to wait
	stage stage
	// taken is set when the committer begins the write, or when the caller withdraws the
	// write.
	taken atomic.Bool
}

// stage says how far the turn of a write is. If there are many writes, lower stages go
// first.
type stage int

const (
	continues stage = iota // the turn has begun, or the write belongs to no turn
	begins                 // the write begins the turn
	opens                  // the write opens the session
	stages
)

// writing is an open transaction, with its queries.
type writing struct {
	*table.Queries
	store *Store
	tx    *sql.Tx
	runs  bool        // the journal has new or changed runs
	lines chain.Lines // what the transaction writes, for the chain
	// sessions maps the keys of the jobs to their sessions, see insertJobs.
	sessions map[string]string
}

// submit calls do in a transaction. It returns when the write is durable or rejected. If
// the context ends while the write waits in the queue, submit withdraws the write. If the
// write has begun, submit waits for its result.
func (s *Store) submit(ctx context.Context, do func(ctx context.Context, w *writing) error) error {
	return s.submitRequest(ctx, &request{do: do, since: time.Now()})
}

// submitStage is like submit, for a write of the given stage.
func (s *Store) submitStage(ctx context.Context, at stage, do func(ctx context.Context, w *writing) error) error {
	return s.submitRequest(ctx, &request{do: do, since: time.Now(), stage: at})
}

// submitSince is like submit, for a caller that has already waited since the given time.
func (s *Store) submitSince(ctx context.Context, since time.Time, do func(ctx context.Context, w *writing) error) error {
	return s.submitRequest(ctx, &request{do: do, since: since})
}

// submitRequest queues a request and waits for its result.
func (s *Store) submitRequest(ctx context.Context, r *request) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.ctx, r.done = context.WithoutCancel(ctx), make(chan error, 1)
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

// add queues a request. It returns false if the committer is closed.
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

// close writes all queued requests and then ends the committer.
func (c *committer) close() {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.wake)
	}
	c.mu.Unlock()
	<-c.ended
}

// work is the committer's goroutine. It writes until the committer is closed.
func (c *committer) work() {
	defer close(c.ended)
	for range c.wake {
		for c.batch() {
		}
	}
	for c.batch() { // requests that were queued before close
	}
}

// A transaction has at most batchSize writes. The oldestFirst oldest writes always belong to
// it, so that running turns cannot keep out new ones. With 1,000 turns at once, half of them
// end after 0.54 of the time with 64 writes, 0.58 with 96 and 0.63 with 128. Compared with
// no limit, 64 writes take about 30 % more CPU time, 96 about 10 %, and 128 none.
const (
	batchSize   = 96
	oldestFirst = 8
)

// take removes the next requests from the queue. It drops requests that were withdrawn.
// more reports whether other requests wait.
func (c *committer) take() (batch []*request, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = slices.DeleteFunc(c.waiting, func(r *request) bool { return r.taken.Load() })
	if batch, c.waiting = c.waiting, nil; len(batch) > batchSize {
		batch, c.waiting = split(batch)
	}
	return slices.DeleteFunc(batch, func(r *request) bool { return !r.taken.CompareAndSwap(false, true) }), len(c.waiting) > 0
}

// split selects batchSize of the waiting requests: the oldest ones, and then those with the
// lowest stage. Each part keeps its order.
func split(waiting []*request) (batch, rest []*request) {
	var room [stages]int // how many requests of each stage the batch has, without the oldest
	for _, r := range waiting[oldestFirst:] {
		room[r.stage]++
	}
	left := batchSize - oldestFirst
	for at := range room {
		room[at] = min(room[at], left)
		left -= room[at]
	}
	batch = append(make([]*request, 0, batchSize), waiting[:oldestFirst]...)
	for _, r := range waiting[oldestFirst:] {
		if room[r.stage] == 0 {
			rest = append(rest, r)
			continue
		}
		room[r.stage]--
		batch = append(batch, r)
	}
	return batch, rest
}

// batch writes queued requests in one transaction. more reports whether other requests
// wait.
func (c *committer) batch() (more bool) {
	batch, more := c.take()
	if len(batch) == 0 {
		return more
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
	return more
}

// transact writes a batch and commits it. It stores the errors of single requests in told.
// An error that it returns is an error of the whole transaction.
func (c *committer) transact(batch []*request, told []error) (err error) {
	ctx := context.Background()
	tx, err := c.begin(ctx, batch[0].since)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback() // SQLite may have rolled back already
		}
	}()
	w := &writing{Queries: c.store.write.WithTx(tx), store: c.store, tx: tx}
	accepted := 0
	for i, r := range batch {
		if len(batch) == 1 { // a single request is rolled back with the transaction
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
	linked, err := c.link(ctx, w)
	if err != nil {
		return fmt.Errorf("chain: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	c.head = linked
	c.transactions.Add(1)
	if w.runs {
		c.store.stirred.broadcast()
	}
	return nil
}

// begin begins a transaction for writes that have waited since the given time. It first
// checks that the files still exist, because a commit to a removed file would be lost.
//
// If another program has locked the file, begin tries again until the writes have waited
// for Options.BusyTimeout. SQLite itself waits only briefly, because the job queue uses the
// same connection. After a failure, begin tries only once per call, until BusyTimeout has
// passed without a failure. Otherwise each write of a turn would wait for BusyTimeout.
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

// errNothing rolls back a batch in which every request has failed with its own error.
// Callers never get errNothing.
var errNothing = errors.New("nothing was accepted")

// apart performs a request so that it can be rolled back alone. The first result is the
// error of the request. The second is an error of the whole transaction, which was rolled
// back.
func (c *committer) apart(ctx context.Context, r *request, w *writing) (refused, err error) {
	if err := c.store.point(ctx, w.tx, c.store.savepoint); err != nil {
		return nil, fmt.Errorf("savepoint: %w", err)
	}
	runs, lines := w.runs, w.lines.Len()
	if refused = perform(r, w); refused != nil {
		w.runs = runs
		w.lines.Cut(lines)
		if err := c.store.point(ctx, w.tx, c.store.undo); err != nil {
			return refused, fmt.Errorf("the write was rolled back because another write in the same transaction failed: %w", refused)
		}
	}
	if err := c.store.point(ctx, w.tx, c.store.release); err != nil {
		return refused, fmt.Errorf("release: %w", err)
	}
	return refused, nil
}

// perform calls a request's function. If the function panics, only this request fails.
func perform(r *request, w *writing) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a write panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return r.do(r.ctx, w)
}

// point executes a savepoint statement.
func (s *Store) point(ctx context.Context, tx *sql.Tx, stmt *sql.Stmt) error {
	_, err := tx.StmtContext(ctx, stmt).ExecContext(ctx) //nolint:sqlclosecheck // the transaction closes it
	return err                                           //nolint:wrapcheck // the caller adds context
}

// Stats counts writes since the store was opened.
type Stats struct {
	// Commits counts the successful calls of Commit.
	Commits int64
	// Transactions counts the committed transactions. Each of them waits for the disk once.
	// Maintenance transactions of the job queue are not included.
	Transactions int64
}

// Stats returns the number of writes since the store was opened.
func (s *Store) Stats() Stats {
	return Stats{Commits: s.committer.commits.Load(), Transactions: s.committer.transactions.Load()}
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
