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

// Failure says what it means when a handler fails: by an error, a panic, a
// timeout, a cancel, a malformed answer or a missing executable.
//
// The zero value is the phase's default.
type Failure struct {
	mode  failureMode
	value *fallbackValue
}

type fallbackValue struct {
	phase  string
	out    any
	answer *Answer
}

var (
	// Closed stops: a gate denies, a phase that rewrites withholds, any other
	// collect phase ends the turn.
	Closed = Failure{mode: closed}
	// Open records a warning and goes on.
	Open = Failure{mode: open}
)

// Fallback makes the failure mode that uses out in place of the missing
// answer. It belongs to this phase and is held to the subscription's
// capabilities like any other answer.
func (p Phase[In, Out]) Fallback(out Out) Failure {
	value := &fallbackValue{p.Name(), out, answerOf(nilable[Out](), out)}
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

// UnmarshalText reads the wire name. A fallback read this way has lost its
// answer, so that it can be shown and not installed.
func (f *Failure) UnmarshalText(text []byte) error {
	for mode := unset; mode <= fallback; mode++ {
		if read := (Failure{mode: mode}); read.String() == string(text) {
			*f = read
			return nil
		}
	}
	return fmt.Errorf("unknown failure mode %q (known: closed, fallback, open)", text)
}

// fallbackProblem checks that a fallback belongs to this phase and stays
// within what the subscription may contribute.
func (def *defined[In, Out]) fallbackProblem(s *subscription, granted Capability) error {
	value := s.opts.Failure.value
	if value == nil {
		return errors.New("fallback has no value: make it with Phase.Fallback")
	}
	if _, ok := value.out.(Out); value.phase != def.name || (!ok && value.out != nil) {
		return fmt.Errorf("fallback belongs to phase %q", value.phase)
	}
	if value.answer.Invalid != "" {
		return fmt.Errorf("fallback makes no sense: %s", value.answer.Invalid)
	}
	if uses := value.answer.uses(); !granted.Has(uses) {
		return fmt.Errorf("fallback contributes %s, which the subscription may not: declare it under capabilities", uses&^granted)
	}
	if len(value.answer.Jobs) > 0 {
		return errors.New("fallback schedules a job: a fallback may not start work")
	}
	return nil
}

// Problem is one handler's failure, as the phase and its caller see it.
type Problem struct {
	Phase        string
	Subscription string
	Code         codes.Code
	// Rewrites reports that the subscription may rewrite, so that its failure
	// leaves the input as nobody wanted it seen.
	Rewrites bool
	// Err is what happened. Its text may quote what the handler saw, so it is
	// not stored.
	Err error
}

// Reason words the problem for a person or a model. It is the reason that the
// handler gave, or it says that the subscription could not decide. It quotes an error
// that the handler returned on purpose, and nothing else of what it saw.
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

// FailureError reports that a handler failed under [Closed] at a phase that
// has no answer to stand for the failure, so that the turn must end.
type FailureError struct{ Problem }

func (e *FailureError) Error() string {
	return fmt.Sprintf("hook %s at %s failed closed (%s): %v", e.Subscription, e.Phase, e.Code, e.Err)
}

// Unwrap returns what happened.
func (e *FailureError) Unwrap() error { return e.Err }
