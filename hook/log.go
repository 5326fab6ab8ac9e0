package hook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/belay-run/belay/hook/codes"
)

// chunkSize is the minimum number of records in a chunk.
const chunkSize = 128

// chunk is a block of records. Dispatches write to reserved spans of it without a lock. The
// log reads a span when its dispatch is over.
type chunk struct {
	records []record
	base    uint64 // the sequence number of the first record
	used    int
	spans   []span
	open    int  // spans whose dispatch is not over
	special bool // it has records that may be in the journal already
}

type span struct {
	from, to int // to is where writing stopped: see finish
	over     bool
}

// reservation is a span that a dispatch may write to.
type reservation struct {
	chunk *chunk
	span  int
	recs  []record
	base  uint64 // the sequence number of the first of recs
	n     int
	// special marks records that may be in the journal already, or will be written again:
	// started runs, and those that came with jobs.
	special bool
}

// next returns the record to write. Every entry of a plan writes at most one. If one writes
// two, because something panicked after its record, the second is dropped to keep the
// process alive.
func (r *reservation) next() *record {
	if r.n == len(r.recs) {
		return new(record)
	}
	rec := &r.recs[r.n]
	r.n++
	return rec
}

// seq returns the sequence number of the record that next returned.
func (r *reservation) seq() uint64 { return r.base + uint64(r.n) }

// runLog collects the records of one snapshot until they are taken or written to the
// journal. A full chunk is written, so that memory stays bounded. If it cannot be written,
// nothing is dropped and dispatches are refused.
type runLog struct {
	rt *Runtime

	mu      sync.Mutex
	current *chunk
	older   []*chunk
	refused []Run // the journal could not be written; these are tried first
	closed  bool  // the turn is over: later ends are written at once
}

// reserve makes room for n records, in an empty reservation. It fails if the journal could
// not be written and there is no room left.
func (l *runLog) reserve(ctx context.Context, n int, r *reservation) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.refused) > 0 {
		if err := l.append(ctx, nil); err != nil {
			return err
		}
	}
	if l.current == nil {
		l.current = l.rt.newChunk(n)
	}
	c := l.current
	if c.used+n > len(c.records) || len(c.spans) >= chunkSize {
		if c.open == 0 {
			l.current = nil // it does not belong to the log any more, even if it cannot be written
			if err := l.spill(ctx, c); err != nil {
				return err
			}
		} else {
			l.older = append(l.older, c)
		}
		c = l.rt.newChunk(n)
		l.current = c
	}
	r.chunk, r.span, r.recs, r.base = c, len(c.spans), c.records[c.used:c.used+n], c.base+uint64(c.used)
	c.spans = append(c.spans, span{from: c.used, to: c.used})
	c.used += n
	c.open++
	return nil
}

// finish ends a reservation: its records can be read now.
func (l *runLog) finish(ctx context.Context, r *reservation) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := r.chunk
	s := &c.spans[r.span]
	s.to, s.over = s.from+r.n, true
	c.open--
	c.special = c.special || r.special
	if r.span == len(c.spans)-1 {
		c.used = s.to // return the unused part
		if r.n == 0 {
			c.spans = c.spans[:r.span]
		}
	}
	if l.closed {
		return l.append(ctx, l.collect(nil))
	}
	if c.open > 0 || c == l.current {
		return nil
	}
	err := l.spill(ctx, c)
	for i, old := range l.older {
		if old == c {
			l.older = append(l.older[:i], l.older[i+1:]...)
			break
		}
	}
	return err
}

// spill writes a chunk without open spans to the journal. The chunk does not belong to the
// log after that.
func (l *runLog) spill(ctx context.Context, c *chunk) error {
	if journal, ok := l.rt.opts.Journal.(*MemoryJournal); ok && !c.special {
		l.rt.recycle(journal.adopt(l.rt, c))
		return nil
	}
	var runs []Run
	for _, s := range c.spans {
		for i := s.from; i < s.to; i++ {
			runs = append(runs, l.rt.run(&c.records[i]))
		}
	}
	l.rt.recycle(c) // refused records are kept as full runs
	return l.append(ctx, runs)
}

// append writes runs after those that were rejected before. Runs that cannot be written
// are kept. l.mu is held, so that records stay in order.
func (l *runLog) append(ctx context.Context, runs []Run) error {
	l.refused = append(l.refused, runs...)
	if len(l.refused) == 0 {
		return l.rt.recordLate(ctx)
	}
	left, err := l.rt.write(ctx, l.refused)
	l.refused = left
	if err != nil {
		return err
	}
	return l.rt.recordLate(ctx)
}

// write appends runs to the journal and returns those that it did not accept. If the
// journal has a run in another final state, that is no error: another process has settled
// it, and its record is kept.
func (rt *Runtime) write(ctx context.Context, runs []Run) ([]Run, error) {
	ctx = context.WithoutCancel(ctx) // an abort of the turn must not lose its records
	err := rt.opts.Journal.Append(ctx, runs)
	if errors.Is(err, ErrSettled) && len(runs) > 1 {
		for len(runs) > 0 {
			if err = rt.opts.Journal.Append(ctx, runs[:1]); err != nil && !errors.Is(err, ErrSettled) {
				break
			}
			runs = runs[1:]
		}
	}
	if err == nil || errors.Is(err, ErrSettled) {
		return nil, nil
	}
	return runs, &JournalError{err}
}

// flush writes everything that is over.
func (l *runLog) flush(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.current; c != nil && c.open == 0 && len(l.older) == 0 && len(l.refused) == 0 {
		l.current = nil
		return l.spill(ctx, c)
	}
	return l.append(ctx, l.collect(nil))
}

// close writes everything that is over. Later ends are written at once.
func (l *runLog) close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	return l.flush(ctx)
}

// record writes runs that were taken.
func (l *runLog) record(ctx context.Context, runs []Run) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.append(ctx, runs)
}

// take removes and returns everything that is over.
func (l *runLog) take() []Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	refused := l.refused
	l.refused = nil
	return l.collect(refused)
}

// collect converts the finished records to runs, appends them to the given runs, and
// empties chunks. l.mu is held.
func (l *runLog) collect(runs []Run) []Run {
	chunks := l.older
	if l.current != nil {
		chunks = append(slices.Clip(chunks), l.current)
	}
	n := 0
	for _, c := range chunks {
		for _, s := range c.spans {
			if s.over {
				n += s.to - s.from
			}
		}
	}
	runs = slices.Grow(runs, n)
	for _, c := range chunks {
		for i := range c.spans {
			s := &c.spans[i]
			if !s.over {
				continue
			}
			for k := s.from; k < s.to; k++ {
				runs = append(runs, l.rt.run(&c.records[k]))
			}
			s.to = s.from
		}
		if c.open == 0 {
			c.reset()
			l.rt.number(c)
		}
	}
	return runs
}

func (c *chunk) reset() {
	clear(c.records[:c.used])
	c.used, c.spans, c.special = 0, c.spans[:0], false
}

// recycle keeps a chunk for later use.
func (rt *Runtime) recycle(c *chunk) {
	if c != nil && len(c.records) == chunkSize {
		c.reset()
		rt.chunks.Put(c)
	}
}

func (rt *Runtime) newChunk(n int) *chunk {
	c, ok := rt.chunks.Get().(*chunk)
	if !ok || len(c.records) < n {
		c = &chunk{records: make([]record, max(n, chunkSize)), spans: make([]span, 0, 32)}
	}
	rt.number(c)
	return c
}

// number gives the records of an empty chunk new numbers.
func (rt *Runtime) number(c *chunk) {
	n := uint64(len(c.records))
	c.base = rt.seq.Add(n) - n
}

// JournalError says that records could not be written. Nothing was dropped.
type JournalError struct{ Err error }

func (e *JournalError) Error() string { return fmt.Sprintf("%s: %v", codes.Journal, e.Err) }

// Unwrap returns the journal's error.
func (e *JournalError) Unwrap() error { return e.Err }
