package hook

import "slices"

// Slow reports whether the turn waits for a subscription of the phase that may take long:
// its handler leaves the process, has a deadline, or is a Go function with a timeout. If
// Slow reports true, a caller can store what must not be lost before it dispatches.
//
// If inputs are given, a subscription counts only if its labels match one of them. Slow
// does not evaluate conditions: they count as true.
func (p Phase[In, Out]) Slow(s *Snapshot, inputs ...In) bool {
	if s == nil || p.d == nil {
		return false
	}
	plan := s.gen.Load().find(p.d.core)
	if plan == nil || !plan.slow || len(inputs) == 0 {
		return plan != nil && plan.slow
	}
	return p.d.slow(plan, slices.Clone(inputs)) // the clone keeps the caller's slice on its stack
}

// slowFor is Slow for one input.
func (p *phasePlan) slowFor(in any) bool {
	for i := range p.entries {
		if e := &p.entries[i]; e.isSlow() && (e.match == nil || e.match.labelsMatch(in)) {
			return true
		}
	}
	return false
}

// isSlow reports whether the turn may wait long for the handler.
func (e *installed) isSlow() bool {
	o := &e.sub.opts
	return o.Execution.waits() && (o.Kind.leaves() || o.Execution == Deadline || o.Kind == HandlerGo && o.Timeout > 0)
}

// leaves reports whether handlers of this kind work outside the process.
func (k HandlerKind) leaves() bool {
	return k == HandlerCommand || k == HandlerWorker || k == HandlerWebhook
}
