package hook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/belay-run/belay/hook/codes"
)

// Some handlers need evidence: the journal must have a started record before the handler
// begins. If the process ends during such a handler, the record remains and shows that the
// handler may have run.
//
// Two kinds of handlers need evidence: handlers that leave the process, and handlers that
// the dispatch does not wait for. A Go handler that the dispatch waits for needs none,
// because its work ends with the process.
//
// When a dispatch reaches the first handler that needs evidence, it writes the started
// records of all such handlers in one commit. If an earlier handler denies, the handlers
// that the dispatch did not reach end as skipped.

// evident reports whether the subscription's handler needs evidence. A background run needs
// none, because the queue stores its record together with its job.
func (s *subscription) evident() bool {
	return s.opts.Execution == FireAndRecord || s.opts.Execution != Background && s.opts.Kind.leaves()
}

// startedRun is a run whose started record was sent to the journal.
type startedRun struct {
	seq     uint64 // 0: the run has no started record
	key     string
	attempt int
	ended   bool // the dispatch has recorded the end of the run
}

// evidence makes sure that the journal has the started record of the entry at an index of
// the execution order. It reports whether the handler may run. If the handler may not run,
// evidence records the failure.
func (d *dispatch) evidence(at int) bool {
	e := &d.plan.entries[at]
	if !e.evident || d.trace != nil { // an explanation writes no record
		return true
	}
	if d.started == nil {
		d.started = make([]startedRun, len(d.plan.entries))
	}
	if d.unwritten == nil && d.started[e.pos].seq == 0 {
		if err := d.writeStarted(at); err != nil {
			d.unwritten = &JournalError{err}
		}
		d.mark = d.rt.now() // do not count the journal's time as the handler's time
	}
	if d.unwritten == nil {
		return true
	}
	if d.cancelled() {
		d.skip(e)
		return false
	}
	d.fail(e, d.mark, 0, Problem{Code: codes.Journal, Err: d.unwritten})
	if d.def.kind == Gate && !e.shadow { // the dispatch fails, whatever the subscription's failure mode is
		d.stop = min(d.stop, e.pos)
		if d.err == nil {
			d.err = d.unwritten
		}
	}
	return false
}

// writeStarted writes the started record of the entry at an index, and those of later
// entries that match the current input. If a rewriter changes the input later, the dispatch
// matches the entries again.
func (d *dispatch) writeStarted(from int) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the journal or the phase panicked: %v", v)
		}
	}()
	earlier, err := d.snap.attempts.of(d.ctx, d.rt.opts.Journal, d.scope)
	if err != nil {
		return err
	}
	d.room.special = true
	now := d.rt.now()
	var runs []Run
	for i := from; i < len(d.plan.entries); i++ {
		e := &d.plan.entries[i]
		started := &d.started[e.pos]
		if !e.evident || started.seq != 0 || e.pos > d.stop || i > from && !d.wants(e) {
			continue
		}
		key := d.runKey(e)
		*started = startedRun{seq: d.rt.seq.Add(1), key: key, attempt: earlier.next(key, stepHook{d.def.name, e.sub.id, d.scope.Step})}
		rec := record{e: e.installed, scope: d.scope, dispatch: d.room.base, start: now, state: Started}
		started.mark(&rec)
		runs = append(runs, d.rt.run(&rec))
	}
	return d.rt.opts.Journal.Append(d.ctx, runs)
}

// wants reports whether the subscription matches the input, without recording anything. As
// in matches, a condition that fails counts as a match at a gate.
func (d *dispatch) wants(e *entry) (wanted bool) {
	defer func() {
		if recover() != nil {
			wanted = false // the method matches fails in the same way later, so the handler does not run
		}
	}()
	m := e.match
	if m == nil {
		return true
	}
	if !m.labelsMatch(d.in) {
		return false
	}
	if m.when == nil {
		return true
	}
	held, err := holds(m.when, d.in)
	return held || err != nil && d.def.kind == Gate
}

// hookKey is the prefix of the keys of hook runs. The keys of jobs have other prefixes.
const hookKey = "hook:"

// runKey returns the key of a hook's run. If the turn is resumed and the hook runs again
// for the same input, the key is the same. The key is empty outside of a turn, because only
// turns are resumed.
func (d *dispatch) runKey(e *entry) string {
	if d.scope.Turn == "" {
		return ""
	}
	reference := ""
	if d.def.reference != nil {
		reference = d.def.reference(d.in)
	}
	var room [256]byte
	text := append(room[:0], d.def.name...)
	for _, part := range [...]string{e.sub.id, d.scope.Session, d.scope.Turn} {
		text = append(append(text, 0), part...)
	}
	text = strconv.AppendInt(append(text, 0), int64(d.scope.Step), 10)
	text = append(append(text, 0), reference...)
	sum := sha256.Sum256(text)
	return string(hex.AppendEncode(append(room[:0], hookKey...), sum[:16]))
}

// mark gives a record the number, key and attempt of this run. It first copies details that
// records share.
func (s *startedRun) mark(r *record) {
	r.seq = s.seq
	switch r.detail {
	case nil:
		r.detail = new(detail)
	case skippedDetail, canceledDetail:
		own := *r.detail
		r.detail = &own
	}
	r.detail.key, r.detail.attempt = s.key, s.attempt
}

// asking returns the record to store together with a run's jobs. A run with a started
// record stays started here: the dispatch writes its end later. That end is a failure if it
// is unknown whether the jobs were stored.
func (d *dispatch) asking(e *entry, rec *record) Run {
	asked := *rec
	if len(d.started) > 0 && d.started[e.pos].seq != 0 {
		asked.state = Started
	}
	return d.rt.run(&asked)
}

// endStarted records as skipped the runs that were written as started, but whose handlers
// the dispatch did not reach.
func (d *dispatch) endStarted() {
	if d.started == nil {
		return
	}
	for i := range d.plan.entries {
		e := &d.plan.entries[i]
		if s := &d.started[e.pos]; s.seq != 0 && !s.ended {
			d.record(e, Skipped, d.mark, 0, skippedDetail)
		}
	}
}

// attempts counts how many times each hook has run in a resumed turn. The zero value is for
// turns that were not resumed.
type attempts struct {
	mu      sync.Mutex
	turn    string
	earlier *earlierRuns // nil until it is needed
}

// earlierRuns holds the number of the last attempt of each hook of a turn. A nil
// *earlierRuns has no attempts.
type earlierRuns struct {
	byKey map[string]int
	// interrupted counts the runs that were unfinished when a process ended. It is needed
	// because byKey can miss them: the reference of an input can change when the turn is
	// resumed, for example because there is a new approval.
	interrupted map[stepHook]int
}

// stepHook is a hook in one step of a turn.
type stepHook struct {
	phase, subscription string
	step                int
}

// next returns the number of the next attempt.
func (r *earlierRuns) next(key string, h stepHook) int {
	if r == nil {
		return 1
	}
	return max(r.byKey[key], r.interrupted[h]) + 1
}

// Resumes says that the snapshot is for a turn that began earlier, in this process or
// another. Hooks that already ran in that turn get a higher attempt number.
func (s *Snapshot) Resumes(turn string) {
	s.attempts.mu.Lock()
	defer s.attempts.mu.Unlock()
	s.attempts.turn, s.attempts.earlier = turn, nil
}

// of returns the earlier runs of a resumed turn. It reads the journal once, when the first
// hook of the turn needs the number.
func (a *attempts) of(ctx context.Context, journal Journal, scope *Scope) (*earlierRuns, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if scope.Turn == "" || scope.Turn != a.turn {
		return nil, nil //nolint:nilnil // nil has no attempts
	}
	list, ok := journal.(ListJournal)
	if a.earlier != nil || !ok {
		return a.earlier, nil
	}
	found := &earlierRuns{make(map[string]int), make(map[stepHook]int)}
	for run, err := range list.List(ctx, Filter{Session: scope.Session, Turn: scope.Turn}) {
		if err != nil {
			return nil, fmt.Errorf("count the attempts of turn %s: %w", scope.Turn, err)
		}
		if run.State == Skipped || !strings.HasPrefix(run.Key, hookKey) {
			continue
		}
		found.byKey[run.Key] = max(found.byKey[run.Key], run.Attempt)
		if run.State == Interrupted {
			h := stepHook{run.Phase, run.Subscription, run.Scope.Step}
			found.interrupted[h] = max(found.interrupted[h], run.Attempt)
		}
	}
	a.earlier = found
	return found, nil
}
