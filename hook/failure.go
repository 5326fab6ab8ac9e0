package hook

import (
	"errors"
	"fmt"

	"github.com/belay-run/belay/hook/codes"
)

type failureMode uint8

const (
	unset failureMode = iota
	closed
	open
	fallback
)

// Failure says what happens when a handler fails: with an error, a panic, a timeout, a
// cancellation, a malformed answer or a missing executable.
//
// The zero value is the phase's default.
type Failure struct {
	mode  failureMode
	value *fallbackValue
}

type fallbackValue struct {
	phase  string
	out    Output // nil: no opinion
	answer *Answer
}

var (
	// Closed stops. A gate denies. A collect phase ends the turn, unless the phase can
	// withhold its input because a rewriter failed: see [Definition.Closed].
	Closed = Failure{mode: closed}
	// Open records a warning and continues.
	Open = Failure{mode: open}
)

// Fallback returns the failure mode that uses out as the answer if the handler fails. It
// works only at this phase. The subscription needs the capabilities for out, as for any
// other answer.
func (p Phase[In, Out]) Fallback(out Out) Failure {
	value := &fallbackValue{phase: p.Name(), out: opinion(nilable[Out](), out)}
	value.answer = answerOf(value.out)
	return Failure{mode: fallback, value: value}
}

// String returns closed, open, fallback, or default for the zero value.
func (f Failure) String() string {
	switch f.mode {
	case closed:
		return "closed"
	case open:
		return "open"
	case fallback:
		return "fallback"
	default:
		return "default"
	}
}

// MarshalText writes the wire name.
func (f Failure) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads the wire name. The name does not contain a fallback's answer, so a
// fallback that was read can be shown but not installed.
func (f *Failure) UnmarshalText(text []byte) error {
	for mode := unset; mode <= fallback; mode++ {
		if read := (Failure{mode: mode}); read.String() == string(text) {
			*f = read
			return nil
		}
	}
	return fmt.Errorf("unknown failure mode %q (known: closed, fallback, open)", text)
}

// fallbackProblem checks that a fallback is valid, belongs to this phase and schedules no
// job, and that the subscription has the capabilities that the fallback needs.
func (def *phaseCore) fallbackProblem(s *subscription, granted Capability) error {
	value := s.opts.Failure.value
	if value == nil {
		return errors.New("fallback has no value: make it with Phase.Fallback")
	}
	if value.phase != def.name || value.out != nil && !def.takes(value.out) {
		return fmt.Errorf("the fallback was made for phase %q, but the hook is on phase %q: make the fallback with the Fallback method of the hook's phase", value.phase, def.name)
	}
	if value.answer.Invalid != "" {
		return fmt.Errorf("the fallback is invalid: %s", value.answer.Invalid)
	}
	if uses := value.answer.uses(); !granted.Has(uses) {
		return fmt.Errorf("the fallback contributes %s, which the subscription is not allowed to contribute: declare it in capabilities", uses&^granted)
	}
	if len(value.answer.Jobs) > 0 {
		return errors.New("the fallback schedules a job: remove the job, because a fallback must not start work")
	}
	return nil
}

// Problem is the failure of one handler.
type Problem struct {
	Phase        string
	Subscription string
	Code         codes.Code
	// Rewrites reports that the subscription may rewrite. If such a handler fails, the
	// input may still contain text that it should have hidden.
	Rewrites bool
	// Err is the error. Its text may quote the input, so it is not stored.
	Err error
}

// Reason describes the problem to a person or a model. It returns the reason that the
// handler gave, or says that the subscription could not decide. In the second case it may
// quote the handler's error, but no other text of the handler.
func (p Problem) Reason() string {
	if safe, ok := errors.AsType[*SafeError](p.Err); ok && safe.Reason != "" {
		return safe.Reason
	}
	switch p.Code {
	case codes.Error, codes.OutputInvalid, codes.CapabilityMissing, codes.Timeout, codes.Quarantined:
		return fmt.Sprintf("%s could not decide: %v", p.Subscription, p.Err)
	default:
		return fmt.Sprintf("%s could not decide (%s)", p.Subscription, p.Code)
	}
}

// FailureError reports that a handler failed under [Closed] at a phase that has no answer
// for a failure. The turn must end.
type FailureError struct{ Problem }

func (e *FailureError) Error() string {
	return fmt.Sprintf("hook %s at %s failed closed (%s): %v", e.Subscription, e.Phase, e.Code, e.Err)
}

// Unwrap returns the handler's error.
func (e *FailureError) Unwrap() error { return e.Err }
