package hook

import (
	"fmt"
	"slices"

	"github.com/belay-run/belay/internal/near"
)

// problems returns what is wrong with the options. It does not check dependencies: see
// orderPhase.
func (s *subscription) problems(rt *Runtime) []error {
	var found []error
	refuse := func(field, format string, args ...any) {
		found = append(found, &OptionError{
			Subscription: s.id, Phase: s.phase.name, Origin: s.opts.Origin,
			Field: field, Reason: fmt.Sprintf(format, args...),
		})
	}
	o := &s.opts
	if !validID(s.id) {
		refuse("id", "use 1 to 128 characters of [A-Za-z0-9._:/-], got %d characters", len([]rune(s.id)))
	}
	if !rt.knows(s.phase) {
		refuse("phase", "the runtime does not have the phase %q%s", s.phase.name, near.Hint(s.phase.name, rt.phaseNames()))
		return found
	}
	if s.handler == nil {
		refuse("handler", "the subscription has no handler: pass one to Phase.On")
	}
	if !slices.Contains(handlerKinds, o.Kind) {
		refuse("kind", "unknown handler kind %q", o.Kind)
	}
	s.executionProblems(rt, refuse)
	s.failureProblems(rt, refuse)
	s.capabilityProblems(rt, refuse)
	s.matchProblems(refuse)
	if _, ok := visibilityNames[o.Visibility]; !ok {
		refuse("visibility", "unknown %s", o.Visibility)
	}
	if _, ok := originNames[o.Origin.Kind]; !ok {
		refuse("origin", "unknown %s", o.Origin.Kind)
	}
	return found
}

type refusal func(field, format string, args ...any)

func (s *subscription) executionProblems(rt *Runtime, refuse refusal) {
	o := &s.opts
	if _, ok := executionNames[o.Execution]; !ok {
		refuse("execution", "unknown %s", o.Execution)
		return
	}
	if o.Timeout < 0 {
		refuse("timeout", "%s is negative", o.Timeout)
	}
	if o.Execution == Deadline && o.Timeout == 0 {
		refuse("timeout", "deadline execution needs a timeout")
	}
	if s.phase.kind == Gate && !o.Execution.waits() {
		refuse("execution", "a gate waits for its handlers: want blocking or deadline, got %s", o.Execution)
	}
	if o.Concurrent && o.Execution != Blocking {
		refuse("concurrent", "concurrent is only for blocking execution: %s handlers run in parallel without it", o.Execution)
	}
	if o.Concurrent && s.rewrites() {
		refuse("concurrent", "handlers that rewrite run one at a time")
	}
	if s.rewrites() && !o.Execution.waits() {
		refuse("execution", "a handler that rewrites needs blocking or deadline execution, got %s", o.Execution)
	}
	if o.Execution == Background && rt.opts.Queue == nil {
		refuse("execution", "background work needs a queue, and the runtime has none")
	}
	if o.Execution == Background && s.phase.reference == nil {
		refuse("execution", "this phase cannot have background hooks, because its inputs cannot be found again later")
	}
	if o.Retry != (Retry{}) {
		switch {
		case o.Execution != Background:
			refuse("retry", "only background work is retried")
		case !o.Idempotent:
			refuse("retry", "only idempotent work is retried: set idempotent if running it twice does no harm")
		case !o.Retry.sound():
			refuse("retry", "%s", unsoundRetry)
		}
	}
}

const unsoundRetry = "want at least one attempt, no negative delay or cap, and a jitter from 0 to 1"

// sound reports whether the retry is valid.
func (r Retry) sound() bool {
	return r.Attempts >= 1 && r.Delay >= 0 && r.Cap >= 0 && r.Jitter >= 0 && r.Jitter <= 1
}

func (s *subscription) failureProblems(rt *Runtime, refuse refusal) {
	switch o := &s.opts; o.Failure.mode {
	case closed:
		if s.phase.kind == Observe {
			refuse("failure", "an observe phase cannot fail closed: there is nothing left to stop")
		} else if o.Execution == FireAndRecord {
			refuse("failure", "the turn does not wait for a fire_and_record hook, so the hook cannot fail closed")
		}
	case fallback:
		if !o.Execution.waits() {
			refuse("failure", "a fallback needs blocking or deadline execution, got %s", o.Execution)
		}
		if err := s.phase.fallbackProblem(s, s.effective(rt)); err != nil {
			refuse("failure", "%v", err)
		}
	default:
	}
}

// effective returns the capabilities that answers may use: the declared ones that the
// origin's grants cover.
func (s *subscription) effective(rt *Runtime) Capability {
	return s.declared() & rt.opts.Grants(s.opts.Origin) &^ NoCapability
}

func (s *subscription) capabilityProblems(rt *Runtime, refuse refusal) {
	declared := s.opts.Capabilities &^ NoCapability
	if s.opts.Capabilities&NoCapability != 0 && declared != 0 {
		refuse("capabilities", "NoCapability cannot be combined with %s", declared)
	}
	if extra := declared &^ s.phase.caps; extra != 0 {
		refuse("capabilities", "the phase cannot use %s (it can use %s)", extra, s.phase.caps)
	}
	if extra := declared &^ rt.opts.Grants(s.opts.Origin); extra != 0 {
		refuse("capabilities", "origin %s has no grant for %s: the operator must grant each capability by name", s.opts.Origin, extra)
	}
	if extra := declared &^ (CanAudit | CanSchedule); extra != 0 && !s.opts.Execution.waits() {
		refuse("capabilities", "%s hooks may contribute only audit notes and jobs, not %s", s.opts.Execution, extra)
	}
}

func (s *subscription) matchProblems(refuse refusal) {
	for _, set := range s.opts.Match.sets() {
		if !slices.Contains(s.phase.labels, set.label) {
			refuse(set.field, "inputs of this phase have no label %q (they have: %s)", set.label, sortedList(s.phase.labels))
			continue
		}
		if problem := set.problem(); problem != "" {
			refuse(set.field, "%s", problem)
		}
	}
	if s.opts.Match.When != nil {
		if err := s.opts.Match.When.Check(s.phase.self, s.phase.zeroIn()); err != nil {
			refuse("match.when", "%v", err)
		}
	}
}

// validID reports whether id consists of 1 to 128 characters of [A-Za-z0-9._:/-].
func validID(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	return plainCharacters(id)
}

func plainCharacters(text string) bool {
	for i := range len(text) {
		c := text[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '_', c == ':', c == '/', c == '-':
		default:
			return false
		}
	}
	return true
}
