package hook

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
)

// MemoryJournal keeps the newest runs in memory. It is the reference implementation of a
// Journal. Use it in programs that need no history.
type MemoryJournal struct {
	capacity int

	mu       sync.Mutex
	segments []segment // the oldest first
	first    int       // index of the oldest segment; earlier ones were dropped
	count    int       // the number of runs in segments
	byID     map[string]*Run
	dropped  uint64
	spare    [4][]record // memory of dropped segments, for adopt
}

// segment is one run, or many records in the compact form that a dispatch writes. Records
// are converted only when they are read, so that recording is cheap. If most of a chunk is
// used, the segment keeps the chunk. Otherwise it keeps a copy of the records, to save
// memory.
type segment struct {
	run     *Run
	rt      *Runtime
	chunk   *chunk
	records []record
	n       int // the number of runs in the segment
}

// NewMemoryJournal makes a journal that keeps the newest runs, up to capacity.
// [MemoryJournal.Dropped] returns how many runs it has dropped.
func NewMemoryJournal(capacity int) *MemoryJournal {
	return &MemoryJournal{capacity: max(capacity, 1), byID: make(map[string]*Run)}
}

// Append stores runs: see [Journal].
func (j *MemoryJournal) Append(_ context.Context, runs []Run) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	latest := make(map[string]State, len(runs))
	for i := range runs { // all or none: check every run before storing the first
		if err := j.conflict(&runs[i], latest); err != nil {
			return err
		}
	}
	for i := range runs {
		run := runs[i]
		if stored, ok := j.byID[run.ID]; ok {
			if !stored.State.Final() {
				*stored = run
			}
			continue
		}
		j.byID[run.ID] = &run
		j.push(segment{run: &run, n: 1})
	}
	return nil
}

// conflict returns an error if a run cannot be stored. latest has the states of the earlier
// runs of the same Append.
func (j *MemoryJournal) conflict(run *Run, latest map[string]State) error {
	if _, ok := stateNames[run.State]; !ok || run.ID == "" {
		return fmt.Errorf("append: run %q has no id or no valid state", run.ID)
	}
	stored := latest[run.ID]
	if known, ok := j.byID[run.ID]; ok && stored == 0 {
		stored = known.State
	}
	if stored.Final() {
		if run.State.Final() && stored != run.State {
			return fmt.Errorf("append: run %s has already ended as %s, not as %s: %w", run.ID, stored, run.State, ErrSettled)
		}
		return nil
	}
	latest[run.ID] = run.State
	return nil
}

// adopt stores a chunk of finished runs. It returns a chunk that can be reused, or nil.
func (j *MemoryJournal) adopt(rt *Runtime, c *chunk) *chunk {
	n := 0
	for _, s := range c.spans {
		n += s.to - s.from
	}
	if n == 0 {
		return c
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	s := segment{rt: rt, chunk: c, n: n}
	if n < len(c.records)/2 {
		s.chunk, s.records = nil, j.room(n)
		for _, sp := range c.spans {
			s.records = append(s.records, c.records[sp.from:sp.to]...)
		}
	}
	free := j.push(s)
	if s.chunk == nil {
		free = c
	}
	return free
}

// room returns an empty slice for n records. A journal that is full reuses the memory of
// dropped segments, so that recording needs no allocations. The caller holds j.mu.
func (j *MemoryJournal) room(n int) []record {
	for i, r := range j.spare {
		if n <= cap(r) && cap(r) <= 2*n {
			j.spare[i] = nil
			return r
		}
	}
	return make([]record, 0, n)
}

// keep keeps the memory of a dropped segment for room. The caller holds j.mu.
func (j *MemoryJournal) keep(records []record) {
	if records == nil {
		return
	}
	clear(records)
	at := max(slices.IndexFunc(j.spare[:], func(r []record) bool { return r == nil }), 0)
	j.spare[at] = records[:0]
}

// push adds a segment and drops the oldest segments beyond the capacity. It returns a chunk
// that can be reused, or nil. The caller holds j.mu.
func (j *MemoryJournal) push(s segment) (free *chunk) {
	j.segments = append(j.segments, s)
	j.count += s.n
	for j.count-j.segments[j.first].n >= j.capacity {
		old := &j.segments[j.first]
		j.count -= old.n
		j.dropped += uint64(old.n)
		if old.run != nil {
			delete(j.byID, old.run.ID)
		} else {
			free = old.chunk
			j.keep(old.records)
		}
		*old = segment{}
		j.first++
	}
	if j.first > len(j.segments)/2 && j.first >= 64 { // move the remaining segments to the front, so that the slice stays bounded
		n := copy(j.segments, j.segments[j.first:])
		clear(j.segments[n:])
		j.segments, j.first = j.segments[:n], 0
	}
	return free
}

// List yields the stored runs that match. It does not yield runs that are stored after it
// begins.
func (j *MemoryJournal) List(ctx context.Context, filter Filter) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		yielded := 0
		runs := j.newest()
		if filter.Newest {
			slices.Reverse(runs)
		}
		for _, run := range runs {
			if ctx.Err() != nil {
				yield(Run{}, context.Cause(ctx))
				return
			}
			if !filter.Match(run) {
				continue
			}
			if !yield(run, nil) {
				return
			}
			if yielded++; yielded == filter.Limit {
				return
			}
		}
	}
}

// newest returns the newest runs, up to the capacity.
func (j *MemoryJournal) newest() []Run {
	j.mu.Lock()
	defer j.mu.Unlock()
	runs := make([]Run, 0, j.count)
	for _, s := range j.segments[j.first:] {
		if s.run != nil {
			runs = append(runs, *s.run)
			continue
		}
		for i := range s.records {
			runs = append(runs, s.rt.run(&s.records[i]))
		}
		if s.chunk == nil {
			continue
		}
		for _, sp := range s.chunk.spans {
			for i := sp.from; i < sp.to; i++ {
				runs = append(runs, s.rt.run(&s.chunk.records[i]))
			}
		}
	}
	return runs[max(len(runs)-j.capacity, 0):]
}

// Remove removes the runs for which match reports true. They do not count as dropped.
func (j *MemoryJournal) Remove(match func(Run) bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	kept := make([]segment, 0, len(j.segments)-j.first)
	j.count = 0
	for _, s := range j.segments[j.first:] {
		if s = j.without(s, match); s.n > 0 {
			kept, j.count = append(kept, s), j.count+s.n
		}
	}
	j.segments, j.first = kept, 0
}

// without returns a segment without the runs for which match reports true. The caller holds
// j.mu.
func (j *MemoryJournal) without(s segment, match func(Run) bool) segment {
	if s.run != nil {
		if !match(*s.run) {
			return s
		}
		delete(j.byID, s.run.ID)
		return segment{}
	}
	var kept []record
	keep := func(records []record) {
		for i := range records {
			if !match(s.rt.run(&records[i])) {
				kept = append(kept, records[i])
			}
		}
	}
	keep(s.records)
	if s.chunk != nil {
		for _, sp := range s.chunk.spans {
			keep(s.chunk.records[sp.from:sp.to])
		}
	}
	if len(kept) == s.n {
		return s
	}
	return segment{rt: s.rt, records: kept, n: len(kept)}
}

// Dropped returns how many runs the journal dropped to make room.
func (j *MemoryJournal) Dropped() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.dropped + uint64(max(j.count-j.capacity, 0))
}

var _ ListJournal = (*MemoryJournal)(nil)
