package hook

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/belay-run/belay/hook/codes"
)

// Outcome is the result of a dispatch.
type Outcome[In any, Out Output] struct {
	// Input is the input after the rewriters.
	Input In
	// Output is the merged answer. Its zero value means that no handler had an opinion.
	Output Out
	// By is the subscription whose verdict won at a gate. It is empty if every verdict is a
	// pass.
	By string
	// Rewriters are the subscriptions that rewrote the input, in order.
	Rewriters []string
	// Unsound reports that the rewriters made the input invalid. The handlers that do not
	// rewrite were then not called.
	Unsound bool
	// Diagnostics report failures, and contributions that the limits cut.
	Diagnostics []Diagnostic
}

// Dispatch calls the handlers that the snapshot has for this phase, in plan order, and
// merges their answers. A nil snapshot has no handlers.
//
// At a gate, the failure of a handler that fails closed becomes a denial in the merged
// verdict. Dispatch returns one of these errors:
//
//   - a *FailureError, if a handler at a collect phase failed closed
//   - a *JournalError, if runs could not be recorded
//   - ErrReleased, if the snapshot was released
//   - the context's cause, if the context was cancelled
//
// If a gate fails closed by default and Dispatch returns an error, the output denies too.
// So nothing passes, even if the caller ignores the error.
func (p Phase[In, Out]) Dispatch(ctx context.Context, s *Snapshot, in In) (Outcome[In, Out], error) {
	if s != nil && p.d != nil {
		if plan := s.gen.Load().find(p.d.core); plan != nil {
			return p.d.dispatch(ctx, s, plan, in)
		}
	}
	return Outcome[In, Out]{Input: in}, nil
}

// entry is one subscription in the form that a dispatch uses.
type entry struct {
	*installed
	handle handler     // a copy: an inline run then needs nothing of the subscription
	match  *entryMatch // nil: everything
	pos    int         // in plan order
	// plain reports that the entry matches everything and runs inline without a timeout.
	plain bool
}

// entryMatch is a Match in the form that a dispatch uses.
type entryMatch struct {
	labels []labelMatch
	when   Condition
}

type labelMatch struct {
	get func(in any) string
	set patternSet
}

// labelsMatch reports whether the labels match. It does not evaluate the condition.
func (m *entryMatch) labelsMatch(in any) bool {
	for i := range m.labels {
		if !m.labels[i].set.match(m.labels[i].get(in)) {
			return false
		}
	}
	return true
}

// compile fills in what a dispatch uses.
func (p *phasePlan) compile() {
	p.entries = make([]entry, len(p.order))
	for k, e := range p.all.list {
		if turn := p.turn[k]; turn >= 0 {
			p.entries[turn] = p.core.compileEntry(e, int(p.sequence[turn]))
			p.slow = p.slow || e.isSlow()
		}
	}
	for _, st := range p.stages {
		if st.overlap {
			p.widest = max(p.widest, st.to-st.from)
		}
	}
}

func (def *phaseCore) compileEntry(e *installed, pos int) entry {
	c := entry{installed: e, handle: e.handler, pos: pos, plain: e.plain}
	if e.picks {
		m := &entryMatch{when: e.sub.opts.Match.When}
		for _, set := range e.sub.opts.Match.sets() {
			m.labels = append(m.labels, labelMatch{def.label[set.label], set})
		}
		c.match = m
	}
	return c
}

// outcome is an [Outcome] without type parameters. A nil output is the zero value of the
// phase's output.
type outcome struct {
	input       any
	output      Output
	by          string
	rewriters   []string
	unsound     bool
	diagnostics []Diagnostic
}

// dispatch is the state of a running dispatch. It is on the stack of the caller.
//
// A dispatch has no type parameters, although phases have. The compiler makes a copy of
// generic code for each phase: these copies were two thirds of the machine code of package
// belay, and of the time to compile it.
type dispatch struct {
	def   *phaseCore
	plan  *phasePlan
	ctx   context.Context //nolint:containedctx // it never outlives the call
	snap  *Snapshot
	rt    *Runtime
	scope *Scope
	in    any
	room  reservation
	trace *trace

	quick  bool  // if an answer is nil, only a record is needed
	at     int   // the entry being run inline
	inside bool  // inline has not returned normally: see guard
	mark   int64 // the last clock reading
	stop   int   // handlers after this position must not start; -1: cancelled
	fresh  bool  // the next record needs its own number: see unrecord
	ended  bool  // finish was called

	started   []startedRun // by position in plan order; nil if no handler needs a started record: see evidence
	unwritten error        // why the started records are not in the journal

	answers     []answered
	unordered   bool // answers are not in plan order
	rewriters   []string
	diagnostics []Diagnostic
	err         error
}

// answered is an answer that waits for the merge, with the details of its record.
type answered struct {
	pos      int
	from     string
	severity Severity
	out      Output
	more     *detail
}

// dispatch calls the handlers with o.input and fills in o. It takes a pointer because an
// outcome is large.
func (def *phaseCore) dispatch(ctx context.Context, s *Snapshot, plan *phasePlan, tr *trace, o *outcome) error {
	d := dispatch{
		def: def, plan: plan, ctx: ctx, snap: s, rt: s.rt, scope: noScope, in: o.input, stop: math.MaxInt, trace: tr,
	}
	if !s.acquire() {
		return def.refuse(o, fmt.Errorf("%s: %w", def.name, ErrReleased))
	}
	defer d.leave()
	if err := d.begin(); err != nil {
		d.ended = true
		return def.refuse(o, err)
	}
	for i := range plan.stages {
		st := &plan.stages[i]
		if st.from == plan.rewriters && d.unsound() {
			d.stop = min(d.stop, st.from-1)
		}
		if st.overlap {
			d.overlap(st)
			continue
		}
		for d.at = st.from; d.at < st.to; {
			d.inline(st.to)
		}
	}
	o.unsound = d.unsound()
	d.finish(o)
	return d.err
}

// unsound reports whether the rewriters made the input invalid. Call it only when all
// rewriters are done.
func (d *dispatch) unsound() bool {
	return len(d.rewriters) > 0 && d.def.sound != nil && !d.def.sound(d.in)
}

// begin reserves the records and reads the clock.
func (d *dispatch) begin() error {
	if d.def.scope != nil {
		if scope := d.def.scope(d.in); scope != nil {
			d.scope = scope
		}
	}
	n := len(d.plan.entries)
	if d.trace != nil {
		d.room = reservation{recs: make([]record, n)} // these records are not stored: Explain records nothing
	} else if err := d.snap.log.reserve(d.ctx, n, &d.room); err != nil {
		return err
	}
	d.mark = d.rt.now()
	d.quick = d.trace == nil
	return nil
}

// leave runs when the dispatch is over, even after a Goexit or a panic of the phase's own
// functions, because the records must stay readable.
func (d *dispatch) leave() {
	if !d.ended {
		d.finish(new(outcome))
	}
	d.snap.drop()
}

// refuse fills in the outcome of a dispatch that was cancelled or could not be recorded. A
// gate then denies. A gate that fails open by default does not, because a denial does harm
// there.
func (def *phaseCore) refuse(o *outcome, err error) error {
	o.output, o.by = nil, ""
	if def.kind == Gate && def.failure == Closed {
		o.output, _ = def.closed(Problem{Phase: def.name, Subscription: "the runtime", Code: refusalCode(err), Err: err})
	}
	return err
}

func refusalCode(err error) codes.Code {
	var journal *JournalError
	var failure *FailureError
	switch {
	case errors.As(err, &journal):
		return codes.Journal
	case errors.As(err, &failure):
		return failure.Code
	case errors.Is(err, ErrReleased):
		return codes.Released
	default:
		return codes.Canceled
	}
}

// finish merges the answers in plan order and finishes the records.
func (d *dispatch) finish(o *outcome) {
	d.ended = true
	o.input = d.in
	worst := SeverityPass
	if len(d.answers) > 0 {
		var err error
		if worst, err = d.merge(o); err != nil && d.err == nil {
			d.err = err
		}
	}
	d.cancelled() // stops if the turn was cancelled while the last handler ran
	d.endStarted()
	if d.room.chunk != nil {
		if err := d.snap.log.finish(d.ctx, &d.room); err != nil {
			d.err = err
		}
	}
	if d.err != nil && d.def.kind == Gate && !worst.stops() {
		_ = d.def.refuse(o, d.err)
	}
	o.rewriters, o.diagnostics = d.rewriters, d.diagnostics
}

// cancelled reports whether the turn was cancelled. If so, no more handlers start. It does
// not call ctx.Done, because the context may have to make a channel first.
func (d *dispatch) cancelled() bool {
	if d.ctx.Err() == nil {
		return false
	}
	d.stop = -1
	if d.err == nil {
		d.err = fmt.Errorf("%s: %w", d.def.name, context.Cause(d.ctx))
	}
	return true
}

// merge merges the answers in plan order and returns the most severe verdict. If the merge
// rule panics, the dispatch fails. At a gate that fails closed by default, a failed
// dispatch denies.
func (d *dispatch) merge(o *outcome) (worst Severity, err error) {
	defer func() {
		if r := recover(); r != nil {
			worst = SeverityPass
			err = &FailureError{Problem{
				Phase: d.def.name, Subscription: "the merge rule", Code: codes.Panic, Err: panicked(r).Err,
			}}
		}
	}()
	if d.unordered {
		slices.SortStableFunc(d.answers, func(a, b answered) int { return a.pos - b.pos })
	}
	for i := range d.answers {
		a := &d.answers[i]
		m := Merging{From: a.from, Wins: a.severity > worst, Limits: d.rt.opts.Limits, phase: d.def.name}
		if m.Wins {
			worst, o.by = a.severity, a.from
		}
		if d.def.merge == nil {
			continue
		}
		o.output = d.def.merge(&m, o.output, a.out)
		for _, diag := range m.diagnostics {
			d.diagnostics = append(d.diagnostics, diag)
			a.more.note(diag)
		}
	}
	return worst, nil
}
