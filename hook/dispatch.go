package hook

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Outcome is what a dispatch came to.
type Outcome[In any, Out Output] struct {
	// Input is the input as the rewriters left it.
	Input In
	// Output is the merged answer. Its zero value means that nobody had an
	// opinion.
	Output Out
	// By is the subscription whose verdict stands, at a gate, if it is not Pass.
	By string
	// Rewriters are the subscriptions that rewrote the input, in order.
	Rewriters []string
	// Diagnostics tell what went wrong or was cut.
	Diagnostics []Diagnostic
}

// Dispatch asks the snapshot's subscriptions of this phase, in plan order, and
// merges what they answer. A nil snapshot has none.
//
// At a gate, failures that are closed are part of the merged verdict. The error
// is a *FailureError when a handler at a collect phase failed closed, a
// *JournalError when runs could not be recorded, or the context's cause; at a
// gate the output then denies as well, so that a caller who drops the error
// still does not let anything through.
func (p Phase[In, Out]) Dispatch(ctx context.Context, s *Snapshot, in In) (Outcome[In, Out], error) {
	if s == nil || p.d == nil {
		return Outcome[In, Out]{Input: in}, nil
	}
	plan := s.gen.find(&p.d.phaseCore)
	if plan == nil {
		return Outcome[In, Out]{Input: in}, nil
	}
	return p.d.dispatch(ctx, s, plan, in, nil)
}

// typedPlan is a phasePlan with the phase's types, in order of execution.
type typedPlan[In any, Out Output] struct {
	plan    *phasePlan
	entries []entry[In, Out]
	stages  []typedStage
}

// typedStage is the entries from..to-1.
type typedStage struct {
	from, to int
	overlap  bool
}

// entry is one subscription as a dispatch sees it.
type entry[In any, Out Output] struct {
	*installed
	handle Handler[In, Out]
	// plain entries match everything and run inline without a timeout.
	plain  bool
	shadow bool
	pos    int // in plan order
	labels []labelMatch[In]
	when   Condition
}

type labelMatch[In any] struct {
	get func(In) string
	set patternSet
}

func (def *defined[In, Out]) compilePlan(p *phasePlan) any {
	t := &typedPlan[In, Out]{plan: p, entries: make([]entry[In, Out], 0, len(p.order))}
	for _, st := range p.stages {
		from := len(t.entries)
		for _, pos := range st.positions {
			t.entries = append(t.entries, def.compileEntry(p.order[pos], pos))
		}
		t.stages = append(t.stages, typedStage{from, len(t.entries), st.overlap})
	}
	return t
}

func (def *defined[In, Out]) compileEntry(e *installed, pos int) entry[In, Out] {
	o := &e.sub.opts
	c := entry[In, Out]{
		installed: e, handle: e.sub.handler.(Handler[In, Out]),
		shadow: o.Shadow, pos: pos, when: o.Match.When,
	}
	for _, set := range o.Match.sets() {
		c.labels = append(c.labels, labelMatch[In]{def.Definition.Labels[set.label], set})
	}
	c.plain = len(c.labels) == 0 && c.when == nil && o.Execution == Blocking && o.Timeout == 0
	return c
}

// dispatch is one dispatch under way. It lives on the stack of the caller.
type dispatch[In any, Out Output] struct {
	def   *defined[In, Out]
	plan  *typedPlan[In, Out]
	ctx   context.Context //nolint:containedctx // it never outlives the call
	snap  *Snapshot
	rt    *Runtime
	scope *Scope
	in    In
	room  reservation
	trace *trace[In, Out]

	done    <-chan struct{} // of ctx
	quick   bool            // an empty answer needs no more than a record
	at      int             // the entry being run inline
	running bool            // it is running: see inline
	mark    int64           // when the last clock reading was
	stop    int             // nothing after this position may start

	answers     []answered[Out]
	unordered   bool // answers are not in plan order
	rewriters   []string
	diagnostics []Diagnostic
	err         error
}

type answered[Out any] struct {
	pos      int
	from     string
	severity Severity
	out      Out
}

func (def *defined[In, Out]) dispatch(ctx context.Context, s *Snapshot, resolved *phasePlan, in In, tr *trace[In, Out]) (Outcome[In, Out], error) {
	plan := resolved.typed.(*typedPlan[In, Out])
	n := len(plan.entries)
	d := dispatch[In, Out]{
		def: def, plan: plan, ctx: ctx, snap: s, rt: s.rt, scope: noScope, in: in, stop: math.MaxInt, trace: tr,
	}
	if def.Definition.Scope != nil {
		if scope := def.Definition.Scope(in); scope != nil {
			d.scope = scope
		}
	}
	if s.done.Load() {
		return def.refused(in, fmt.Errorf("%s: the snapshot was released: %w", def.name, ErrClosed))
	}
	if err := s.log.reserve(ctx, n, &d.room); err != nil {
		return def.refused(in, err)
	}
	d.mark = s.rt.now()
	d.done = ctx.Done()
	d.quick = tr == nil && !def.nilable
	for i := range plan.stages {
		st := &plan.stages[i]
		if st.overlap {
			d.overlap(st)
			continue
		}
		for d.at = st.from; d.at < st.to; {
			d.inline(st.to)
		}
	}
	return d.finish()
}

// refused is the outcome of a dispatch that could not be completed: it was
// cancelled or could not be recorded. Gates deny.
func (def *defined[In, Out]) refused(in In, err error) (Outcome[In, Out], error) {
	o := Outcome[In, Out]{Input: in}
	if def.kind == Gate {
		p := Problem{Phase: def.name, Subscription: "the runtime", Code: CodeCanceled, Err: err}
		if _, ok := errors.AsType[*JournalError](err); ok {
			p.Code = CodeJournal
		}
		o.Output, _ = def.Closed(p)
	}
	return o, err
}

// finish merges the answers in plan order and hands in the records.
func (d *dispatch[In, Out]) finish() (Outcome[In, Out], error) {
	o := Outcome[In, Out]{Input: d.in}
	if len(d.answers) > 0 {
		if err := d.merge(&o); err != nil && d.err == nil {
			d.err = err
		}
	}
	if err := d.snap.log.finish(d.ctx, &d.room); err != nil {
		d.err = err
	}
	if d.err != nil && d.def.kind == Gate {
		refused, _ := d.def.refused(d.in, d.err)
		o.Output, o.By = refused.Output, ""
	}
	o.Rewriters, o.Diagnostics = d.rewriters, d.diagnostics
	return o, d.err
}

// cancelled reports whether the turn was cancelled, in which case nothing more
// starts.
func (d *dispatch[In, Out]) cancelled() bool {
	select {
	case <-d.done:
		d.stop = -1
		if d.err == nil {
			d.err = fmt.Errorf("%s: %w", d.def.name, context.Cause(d.ctx))
		}
		return true
	default:
		return false
	}
}

// merge folds the answers in plan order. A merge rule that panics fails the
// dispatch, which at a gate denies.
func (d *dispatch[In, Out]) merge(o *Outcome[In, Out]) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: the merge rule panicked: %v", d.def.name, r)
		}
	}()
	if d.unordered {
		slices.SortStableFunc(d.answers, func(a, b answered[Out]) int { return a.pos - b.pos })
	}
	worst := SeverityPass
	m := &Merging{Limits: d.rt.opts.Limits, phase: d.def.name}
	for i := range d.answers {
		a := &d.answers[i]
		m.From, m.Wins = a.from, a.severity > worst
		if m.Wins {
			worst, o.By = a.severity, a.from
		}
		if d.def.Merge != nil {
			o.Output = d.def.Merge(m, o.Output, a.out)
		}
	}
	d.diagnostics = append(d.diagnostics, m.diagnostics...)
	return nil
}

// record writes the record of a run that is over.
func (d *dispatch[In, Out]) record(e *entry[In, Out], state State, start, took int64, more *detail) *record {
	r := d.room.next()
	*r = record{e: e.installed, scope: d.scope, seq: d.room.seq(), start: start, took: took, detail: more, state: state}
	d.room.special = d.room.special || !state.Final()
	return r
}

// matches reports whether the subscription wants this input.
func (d *dispatch[In, Out]) matches(e *entry[In, Out]) bool {
	for i := range e.labels {
		if value := e.labels[i].get(d.in); !e.labels[i].set.match(value) {
			d.traceUnmatched(e, e.labels[i].set, value)
			return false
		}
	}
	if e.when == nil {
		return true
	}
	held, err := holds(e.when, d.in)
	if err != nil {
		d.diagnose(e, CodeMatchFailed, "the condition failed", err)
		held = d.def.kind == Gate // a broken condition must not open a gate
	}
	if !held {
		d.traceWhen(e)
	}
	return held
}

// holds evaluates a condition, and survives one that panics.
func holds(c Condition, in any) (held bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			held, err = false, fmt.Errorf("the condition panicked: %v", r)
		}
	}()
	return c.Holds(in)
}

// skip records that a subscription was not asked, if it would have been.
func (d *dispatch[In, Out]) skip(e *entry[In, Out]) {
	for i := range e.labels {
		if !e.labels[i].set.match(e.labels[i].get(d.in)) {
			return
		}
	}
	more := skippedDetail
	if d.stop < 0 {
		more = canceledDetail
	}
	d.record(e, Skipped, d.mark, 0, more)
	d.traceSkipped(e)
}

func (d *dispatch[In, Out]) diagnose(e *entry[In, Out], code Code, message string, err error) Diagnostic {
	diag := Diagnostic{
		Code: code, Level: code.Level(), Phase: d.def.name, Subscription: e.sub.id, Message: message, Err: err,
	}
	d.diagnostics = append(d.diagnostics, diag)
	return diag
}

// accept checks an answer, records the run and keeps what is to be merged.
func (d *dispatch[In, Out]) accept(e *entry[In, Out], start, took int64, out Out, ans *Answer) {
	if ans.empty() && d.trace == nil {
		d.room.next().set(e.installed, d.scope, d.room.seq(), start, took)
		return
	}
	if missing := ans.uses() &^ e.caps; missing != 0 {
		d.fail(e, start, took, Problem{
			Code: CodeCapabilityMissing, Err: fmt.Errorf("the answer needs %s, which the subscription does not have", missing),
		})
		return
	}
	in := d.in
	if e.rewrites && ans.uses()&rewriting != 0 {
		var err error
		if in, err = d.rewrite(e, out); err != nil {
			d.fail(e, start, took, Problem{Code: CodeOutputInvalid, Err: err})
			return
		}
	}
	more := &detail{parts: digest(ans.Parts), audit: safeAudit(ans.Audit), severity: ans.Severity}
	rec := d.record(e, Completed, start, took, more)
	if e.shadow {
		d.traceAnswer(e, out, ans, took)
		return
	}
	if len(ans.Jobs) > 0 {
		d.room.special = true
		if err := d.rt.schedule(d.ctx, d.rt.run(rec), ans.Jobs); err != nil {
			d.unrecord(rec)
			d.fail(e, start, took, jobProblem(err))
			return
		}
	}
	d.traceAnswer(e, out, ans, took)
	if e.rewrites && ans.uses()&rewriting != 0 {
		d.in = in
		d.rewriters = append(d.rewriters, e.sub.id)
	}
	d.keep(e, out, ans.Severity)
}

// rewrite applies the answer's rewriting, and survives a faulty phase.
func (d *dispatch[In, Out]) rewrite(e *entry[In, Out], out Out) (in In, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("rewriting for %s panicked: %v", e.sub.id, r)
		}
	}()
	return d.def.Rewrite(d.in, out)
}

// keep puts an answer aside for the merge, and stops the phase if it says so.
func (d *dispatch[In, Out]) keep(e *entry[In, Out], out Out, severity Severity) {
	if d.def.kind != Gate {
		severity = SeverityPass // nothing to stop here: it is recorded and changes nothing
	}
	if n := len(d.answers); n > 0 && d.answers[n-1].pos > e.pos {
		d.unordered = true
	}
	d.answers = append(d.answers, answered[Out]{e.pos, e.sub.id, severity, out})
	if severity.stops() {
		d.stop = min(d.stop, e.pos)
	}
}

// unrecord takes the last record back, to be written anew as a failure.
func (d *dispatch[In, Out]) unrecord(rec *record) {
	*rec = record{}
	d.room.n--
}

func safeAudit(notes []Audit) []Audit {
	if len(notes) == 0 {
		return nil
	}
	safe := slices.Clone(notes)
	for i := range safe {
		safe[i].Code, safe[i].Message = cut(safe[i].Code, 64), cut(safe[i].Message, safeLength)
	}
	return safe
}

// fail records a failed run and does what the failure mode says.
func (d *dispatch[In, Out]) fail(e *entry[In, Out], start, took int64, p Problem) {
	p.Phase, p.Subscription, p.Rewrites = d.def.name, e.sub.id, e.rewrites
	message := safeMessage(p)
	diag := d.diagnose(e, p.Code, message, p.Err)
	state := Failed
	if p.Code == CodeTimeout {
		state = TimedOut
	}
	diag.Phase, diag.Subscription = "", "" // the record says so already
	diag.Err = nil                         // it may quote what the handler saw
	more := &detail{class: p.Code, diags: []Diagnostic{diag}}
	d.record(e, state, start, took, more)
	d.rt.logFailure(d.ctx, d.scope, p)
	d.traceFailure(e, p, took)
	if e.shadow {
		return
	}
	switch e.sub.opts.Failure.mode {
	case closed:
		if d.def.Closed != nil {
			if out, ok := d.def.Closed(p); ok {
				more.severity = d.stand(e, out)
				return
			}
		}
		if d.err == nil || e.pos < d.stop {
			d.err = &FailureError{p}
		}
		d.stop = min(d.stop, e.pos)
	case fallback:
		out, _ := e.sub.opts.Failure.value.out.(Out)
		more.severity = d.stand(e, out)
	default:
	}
}

// stand puts an answer in the place of one that failed. If it rewrites, the
// handlers that follow see that too: a result that is withheld is withheld
// from them as well.
func (d *dispatch[In, Out]) stand(e *entry[In, Out], out Out) Severity {
	if isNil(d.def.nilable, out) {
		return SeverityPass // no opinion
	}
	ans := answerOf(d.def.nilable, out)
	if ans.uses()&rewriting != 0 {
		if in, err := d.rewrite(e, out); err == nil {
			d.in = in
			d.rewriters = append(d.rewriters, e.sub.id)
		}
	}
	d.keep(e, out, ans.Severity)
	return ans.Severity
}

// safeMessage is what a record may say about a problem.
func safeMessage(p Problem) string {
	if safe, ok := errors.AsType[*SafeError](p.Err); ok {
		return cut(safe.Message, safeLength) // and nothing if it has none, whatever its code
	}
	switch p.Code {
	case CodeCapabilityMissing, CodeTimeout, CodeQuarantined, CodeOverloaded, CodeCanceled,
		CodeQueueFull, CodeNoQueue, CodeJobUnknown, CodeJobInvalid, CodeGoexit:
		return cut(p.Err.Error(), safeLength) // worded by the runtime
	default:
		return ""
	}
}

// The details of runs that were not asked are all alike.
var (
	skippedDetail  = &detail{class: CodeSkipped}
	canceledDetail = &detail{class: CodeCanceled}
)
