package hook

import (
	"errors"
	"fmt"

	"github.com/belay-run/belay/hook/codes"
)

// fail records a failed run and applies the failure mode.
func (d *dispatch) fail(e *entry, start, took int64, p Problem) {
	more := d.failed(e, start, took, &p)
	if e.shadow {
		return
	}
	switch e.sub.opts.Failure.mode {
	case closed:
		if out, ok := d.closed(p); ok {
			d.stand(e, out, more, p)
			return
		}
		d.end(e, p)
	case fallback:
		d.stand(e, e.sub.opts.Failure.value.out, more, p)
	default:
	}
}

// failed records and logs a failed run. It fills in the phase and the subscription of p.
func (d *dispatch) failed(e *entry, start, took int64, p *Problem) *detail {
	p.Phase, p.Subscription, p.Rewrites = d.def.name, e.sub.id, e.rewrites
	diag := d.diagnose(e, p.Code, safeMessage(*p), p.Err)
	state := Failed
	if p.Code == codes.Timeout {
		state = TimedOut
	}
	diag.Phase, diag.Subscription = "", "" // the record already has both
	diag.Err = nil                         // the error may quote the input
	more := &detail{class: p.Code, diags: []Diagnostic{diag}}
	d.record(e, state, start, took, more)
	d.rt.logFailure(d.ctx, d.scope, *p)
	d.traceFailure(e, *p, took)
	return more
}

// closed returns the phase's answer for a failure. It reports false if the phase has none.
func (d *dispatch) closed(p Problem) (Output, bool) {
	if d.def.closed == nil {
		return nil, false
	}
	return d.def.closed(p)
}

// end makes the dispatch fail because a handler failed. If several fail, the dispatch
// reports the first in plan order.
func (d *dispatch) end(e *entry, p Problem) {
	if d.err == nil || e.pos < d.stop {
		d.err = &FailureError{p}
	}
	d.stop = min(d.stop, e.pos)
}

// stand uses an answer in place of a failed one. If the answer rewrites the input, later
// handlers see the rewritten input. So a result that is withheld from the model is withheld
// from them too. If the rewrite fails, the dispatch fails, because the input must not pass
// unchanged.
func (d *dispatch) stand(e *entry, out Output, more *detail, p Problem) {
	if out == nil {
		return // no opinion
	}
	ans := answerOf(out)
	if ans.uses()&rewriting != 0 {
		in, err := d.rewrite(e, out)
		if err != nil {
			p.Code, p.Err = codes.OutputInvalid, fmt.Errorf("the answer that replaces the failed one cannot be applied: %w", err)
			d.end(e, p)
			return
		}
		d.in = in
		d.rewriters = append(d.rewriters, e.sub.id)
	}
	more.severity = ans.Severity
	if e.sub.opts.Failure.mode == fallback { // otherwise the phase made the answer, not the subscription
		more.parts = digest(ans.Parts)
	}
	d.keep(e, out, ans.Severity, more)
	d.traceStandIn(e, ans)
}

// safeMessage returns the text about a problem that may be stored in a record.
func safeMessage(p Problem) string {
	if safe, ok := errors.AsType[*SafeError](p.Err); ok {
		return cut(safe.Message, safeLength) // empty if the handler gave no message
	}
	switch p.Code {
	case codes.CapabilityMissing, codes.Timeout, codes.Quarantined, codes.Overloaded, codes.Canceled,
		codes.QueueFull, codes.NoQueue, codes.JobUnknown, codes.JobInvalid, codes.Goexit:
		return cut(p.Err.Error(), safeLength) // the runtime wrote this text
	default:
		return ""
	}
}
