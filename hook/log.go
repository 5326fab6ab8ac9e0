package hook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/belay-run/belay/hook/codes"
)

// chunkSize is the minimum number of records in a chunk.
const chunkSize = 128

// chunk is a block of records. Each dispatch reserves a span of it and writes there without
// a lock. The log reads a span when its dispatch is over.
type chunk struct {
	records []record
	base    uint64 // the sequence number of the first record
	used    int
	spans   []span
	open    int  // number of spans whose dispatch is not over
	special bool // the chunk has records that may be in the journal already
}

type span struct {
	from, to int // to is the end of the written records: see finish
	over     bool
}

// reservation is a span that a dispatch may write to.
type reservation struct {
	chunk *chunk
	span  int
	recs  []record
	base  uint64 // the sequence number of the first of recs
	n     int
	// special marks records that may already be in the journal, or that will be written
	// again: started runs, and runs that were stored together with jobs.
	special bool
}

// next returns the record to write. There is room for one record for each entry of the plan.
// An entry writes a second record only if something panicked after its first. If the room is
// used up, next returns a record that is never stored, so that the process does not panic.
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
// journal. It writes full chunks, so that memory stays bounded. If the journal does not
// accept records, the runLog keeps them and refuses new dispatches.
type runLog struct {
	rt *Runtime

	mu      sync.Mutex
	current *chunk
	older   []*chunk
	refused []Run // records that the journal did not accept; they are written first
	closed  bool  // the turn is over: later records are written at once
}

// reserve makes room for n records in r, which must be empty. It fails if earlier records
// could not be written to the journal.
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
			l.current = nil // remove the chunk from the log, even if it cannot be written
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

// finish ends a reservation: the log may now read its records.
func (l *runLog) finish(ctx context.Context, r *reservation) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := r.chunk
	s := &c.spans[r.span]
	s.to, s.over = s.from+r.n, true
	c.open--
	c.special = c.special || r.special
	if r.span == len(c.spans)-1 {
		c.used = s.to // free the unused part
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

// spill writes a chunk without open spans to the journal. The caller removes the chunk from
// the log, before or after the call.
func (l *runLog) spill(ctx context.Context, c *chunk) error {
	if journal, ok := l.rt.opts.Journal.(*MemoryJournal); ok && !c.special {
		l.rt.recycle(journal.adopt(l.rt, c))
		return nil
	}
	runs := make([]Run, 0, c.used)
	for _, s := range c.spans {
		runs = l.rt.appendRuns(runs, c.records[s.from:s.to])
	}
	l.rt.recycle(c) // append keeps rejected records as full runs
	return l.append(ctx, runs)
}

// appendRuns appends the full form of records.
func (rt *Runtime) appendRuns(runs []Run, records []record) []Run {
	for i := range records {
		known := ""
		if i > 0 && records[i].dispatch == records[i-1].dispatch {
			known = runs[len(runs)-1].Dispatch
		}
		runs = append(runs, rt.runAfter(&records[i], known))
	}
	return runs
}

// append writes runs, after those that the journal rejected before. It keeps runs that
// cannot be written. The caller holds l.mu, so that records stay in order.
func (l *runLog) append(ctx context.Context, runs []Run) error {
	if len(l.refused) > 0 {
		runs = append(l.refused, runs...)
	}
	if len(runs) == 0 {
		return l.rt.recordLate(ctx)
	}
	left, err := l.rt.write(ctx, runs)
	l.refused = left
	if err != nil {
		return err
	}
	return l.rt.recordLate(ctx)
}

// write appends runs to the journal and returns those that the journal did not accept. It
// is no error if the journal has a run in another final state: another process has settled
// the run, and the journal keeps that record.
func (rt *Runtime) write(ctx context.Context, runs []Run) ([]Run, error) {
	ctx = context.WithoutCancel(ctx) // if the turn is aborted, its records must not be lost
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

// flush writes the records of all dispatches that are over.
func (l *runLog) flush(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.current; c != nil && c.open == 0 && len(l.older) == 0 && len(l.refused) == 0 {
		l.current = nil
		return l.spill(ctx, c)
	}
	return l.append(ctx, l.collect(nil))
}

// close is flush for the end of the turn. After it, finish writes records at once.
func (l *runLog) close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	return l.flush(ctx)
}

// record writes runs that take returned.
func (l *runLog) record(ctx context.Context, runs []Run) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.append(ctx, runs)
}

// take removes and returns the records of all dispatches that are over.
func (l *runLog) take() []Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	refused := l.refused
	l.refused = nil
	return l.collect(refused)
}

// notable reports whether a finished dispatch has a run that did something.
func (l *runLog) notable(limit time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.refused) > 0 {
		return true
	}
	in := func(c *chunk) bool {
		for i := range c.spans {
			s := &c.spans[i]
			for j := s.from; s.over && j < s.to; j++ {
				if r := &c.records[j]; r.state != Skipped && (r.detail != nil || r.state != Completed || r.took >= int64(limit)) {
					return true
				}
			}
		}
		return false
	}
	return slices.ContainsFunc(l.older, in) || l.current != nil && in(l.current)
}

// collect converts the records of finished dispatches to runs, appends them to the given
// runs, and empties the chunks. The caller holds l.mu.
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
			runs = l.rt.appendRuns(runs, c.records[s.from:s.to])
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

// JournalError reports that records could not be written. No record was dropped.
type JournalError struct{ Err error }

func (e *JournalError) Error() string { return fmt.Sprintf("%s: %v", codes.Journal, e.Err) }

// Unwrap returns the journal's error.
func (e *JournalError) Unwrap() error { return e.Err }
