package hook

import (
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay/hook/codes"
)

// record writes the record of a run that has ended, has started or was queued.
func (d *dispatch) record(e *entry, state State, start, took int64, more *detail) *record {
	r := d.room.next()
	*r = record{
		e: e.installed, scope: d.scope, dispatch: d.room.base, seq: d.room.seq(),
		start: start, took: took, detail: more, state: state,
	}
	if d.fresh {
		r.seq, d.fresh = d.rt.seq.Add(1), false
	}
	if len(d.started) > 0 && d.started[e.pos].seq != 0 { // the new record replaces the started record
		d.started[e.pos].mark(r)
		d.started[e.pos].ended = true
	}
	d.room.special = d.room.special || !state.Final()
	return r
}

// matches reports whether the subscription matches the input.
func (d *dispatch) matches(e *entry) bool {
	m := e.match
	if m == nil {
		return true
	}
	for i := range m.labels {
		if value := m.labels[i].get(d.in); !m.labels[i].set.match(value) {
			d.traceUnmatched(e, m.labels[i].set, value)
			return false
		}
	}
	if m.when == nil {
		return true
	}
	held, err := holds(m.when, d.in)
	switch {
	case err == nil && !held:
		d.traceWhen(e)
	case err != nil && d.def.kind == Gate: // a failed condition must not open a gate
		d.diagnose(e, codes.MatchFailed, "the condition failed", err)
		return true
	case err != nil: // at other phases, a failed condition is a failure of the handler
		d.fail(e, d.mark, 0, Problem{Code: codes.MatchFailed, Err: err})
		return false
	}
	return held
}

// holds evaluates a condition and recovers from its panic.
func holds(c Condition, in any) (held bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			held, err = false, fmt.Errorf("the condition panicked: %v", r)
		}
	}()
	return c.Holds(in)
}

// skip records that a handler was not called. A handler whose labels do not match the input
// gets no record.
func (d *dispatch) skip(e *entry) {
	if e.match != nil && !e.match.labelsMatch(d.in) {
		return
	}
	more := skippedDetail
	if d.stop < 0 {
		more = canceledDetail
	}
	d.record(e, Skipped, d.mark, 0, more)
	d.traceSkipped(e)
	// Fail closed: if a rewriter was cancelled, nobody may see the input that it should
	// have rewritten.
	if d.stop < 0 && e.rewrites && !e.shadow && d.def.kind != Gate && e.sub.opts.Failure.mode == closed {
		p := Problem{Phase: d.def.name, Subscription: e.sub.id, Rewrites: true, Code: codes.Canceled, Err: d.err}
		if out, ok := d.closed(p); ok {
			d.stand(e, out, new(detail), p)
		}
	}
}

func (d *dispatch) diagnose(e *entry, code codes.Code, message string, err error) Diagnostic {
	diag := Diagnostic{
		Code: code, Level: code.Level(), Phase: d.def.name, Subscription: e.sub.id, Message: message, Err: err,
	}
	d.diagnostics = append(d.diagnostics, diag)
	return diag
}

// declaring says where to declare capabilities: in Go, or in the subscription's file.
func declaring(c Capability, o Origin) string {
	if o.File == "" {
		return "add it to Options.Capabilities"
	}
	names := strings.Join(c.Names(), ", ")
	how := fmt.Sprintf("write capabilities: [%s] in its file", names)
	if o.Kind == OriginProject || o.Kind == OriginSpace {
		how += fmt.Sprintf(", and grant it: belay trust --grant %s", strings.ReplaceAll(names, " ", ""))
	}
	return how
}

// accept checks an answer, records the run and keeps the answer for the merge.
func (d *dispatch) accept(e *entry, start, took int64, out Output, ans *Answer) {
	if ans.empty() && d.trace == nil {
		d.room.next().set(e.installed, d.scope, d.room.base, d.room.seq(), start, took)
		return
	}
	if ans.Invalid != "" {
		d.fail(e, start, took, invalidAnswer(ans))
		return
	}
	if missing := ans.uses() &^ e.caps; missing != 0 {
		d.refuse(e, start, took, out, ans, Problem{
			Code: codes.CapabilityMissing, Err: fmt.Errorf("the answer needs %s, which the subscription is not allowed to contribute: %s", missing, declaring(missing, e.sub.opts.Origin)),
		})
		return
	}
	in := d.in
	if e.rewrites && ans.uses()&rewriting != 0 {
		var err error
		if in, err = d.rewrite(e, out); err != nil {
			d.refuse(e, start, took, out, ans, Problem{Code: codes.OutputInvalid, Err: err})
			return
		}
	}
	more := &detail{parts: digest(ans.Parts), audit: safeAudit(ans.Audit), severity: ans.Severity}
	rec := d.record(e, Completed, start, took, more)
	if e.shadow {
		d.traceAnswer(e, out, ans, took)
		return
	}
	if len(ans.Jobs) > 0 && d.trace == nil {
		d.room.special = true
		if err := e.at(d.rt).schedule(d.ctx, d.asking(e, rec), ans.Jobs); err != nil {
			d.unrecord(rec)
			d.refuse(e, start, took, out, ans, jobProblem(err))
			return
		}
	}
	d.traceAnswer(e, out, ans, took)
	if e.rewrites && ans.uses()&rewriting != 0 {
		d.in = in
		d.rewriters = append(d.rewriters, e.sub.id)
	}
	d.keep(e, out, ans.Severity, more)
}

// refuse fails a run whose answer is invalid or exceeds its capabilities. If the method
// denial returns the answer's denial, the denial counts in every failure mode, and refuse
// drops only the rest of the answer.
func (d *dispatch) refuse(e *entry, start, took int64, out Output, ans *Answer, p Problem) {
	denial, ok := d.denial(e, out, ans, p)
	if !ok {
		d.fail(e, start, took, p)
		return
	}
	more := d.failed(e, start, took, &p)
	if e.shadow {
		return
	}
	stands := answerOf(denial)
	more.severity, more.parts = stands.Severity, digest(stands.Parts)
	d.keep(e, denial, stands.Severity, more)
	d.traceStandIn(e, stands)
}

// denial returns an answer's denial without the rest of the answer. It reports false if the
// answer does not deny.
//
// At some gates a denial does harm: at approval.request, it replaces the decision of a
// person. These gates fail open by default. There, denial also reports false if the
// subscription is not allowed to deny.
func (d *dispatch) denial(e *entry, out Output, ans *Answer, p Problem) (Output, bool) {
	if d.def.kind != Gate || !ans.Severity.stops() {
		return out, false
	}
	bare, ok := d.verdict(out, ans)
	if !ok {
		p.Phase, p.Subscription, p.Rewrites = d.def.name, e.sub.id, e.rewrites
		bare, ok = d.closed(p)
	}
	granted := (ans.uses()&(CanBlock|CanApprove))&^e.caps == 0
	return bare, ok && (granted || d.def.failure == Closed)
}

// verdict returns the answer's verdict without its other contributions. It reports false if
// the phase has no Verdict function, or if that function panics or does not return the
// denial.
func (d *dispatch) verdict(out Output, ans *Answer) (bare Output, ok bool) {
	if d.def.verdict == nil {
		return out, false
	}
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	bare = d.def.verdict(out)
	alone := answerOf(bare)
	return bare, alone.Severity == ans.Severity && alone.uses()&^(CanBlock|CanApprove) == 0
}

func invalidAnswer(ans *Answer) Problem {
	return Problem{Code: codes.OutputInvalid, Err: &SafeError{Code: codes.OutputInvalid, Message: "the answer is invalid: " + ans.Invalid}}
}

// rewrite applies the answer's rewrite, and recovers from a panic of the phase.
func (d *dispatch) rewrite(e *entry, out Output) (in any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the phase's Rewrite function panicked for %s: %v", e.sub.id, r)
		}
	}()
	return d.def.rewrite(d.in, out)
}

// keep keeps an answer for the merge, and stops the phase if the answer says so.
func (d *dispatch) keep(e *entry, out Output, severity Severity, more *detail) {
	if d.def.kind != Gate {
		severity = SeverityPass // nothing can be stopped here: the verdict is only recorded
	}
	if n := len(d.answers); n > 0 && d.answers[n-1].pos > e.pos {
		d.unordered = true
	}
	d.answers = append(d.answers, answered{e.pos, e.sub.id, severity, out, more})
	if severity.stops() {
		d.stop = min(d.stop, e.pos)
	}
}

// unrecord removes the last record, so that the run can be recorded again as a failure. The
// new record gets a new number, because the queue may have stored the first record although
// it reported an error. A run with a started record keeps its number: see asking.
func (d *dispatch) unrecord(rec *record) {
	*rec = record{}
	d.room.n--
	d.fresh = true
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

// These details are the same for every handler that was not called, so records share them.
var (
	skippedDetail  = &detail{class: codes.Skipped}
	canceledDetail = &detail{class: codes.Canceled}
)
