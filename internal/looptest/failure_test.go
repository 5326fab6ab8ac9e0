package looptest_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/hook/hooktest"
)

// SPEC H-10
func TestFailuresByMode(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken on purpose")
	for _, p := range everyPhase() {
		t.Run(p.Name(), func(t *testing.T) {
			t.Parallel()
			in := fullInput(t, p)
			asked := 0
			try := func(failure hook.Failure) (anyOutcome, error) {
				asked = 0
				return p.dispatch(t.Context(), snapshotOf(t, nil,
					p.on("a-broken", failing(broken), &hook.Options{Failure: failure}),
					p.on("b-after", func(context.Context, any) (any, error) { asked++; return nil, nil }, &hook.Options{After: []string{"a-broken"}}),
				), in)
			}
			outcome, err := try(hook.Open)
			if err != nil || !reflect.ValueOf(outcome.out).IsZero() || len(outcome.diagnostics) != 1 || asked != 1 {
				t.Errorf("open: %+v, %v, want a warning and no more, and the dependent asked (%d)", outcome, err, asked)
			}
			byDefault, err := try(hook.Failure{})
			denies := outcomeDenies(t, p, byDefault)
			if wants := p.Info().Failure == hook.Closed; denies != wants || err != nil {
				t.Errorf("by default it denies: %t, want %t (%v)", denies, wants, err)
			}
			if p.Info().Kind == hook.Observe {
				refuseClosed(t, p)
				return
			}
			outcome, err = try(hook.Closed)
			if asked != 0 {
				t.Error("closed: the dependent was asked nevertheless")
			}
			if p.Info().Kind == hook.Gate {
				if !outcomeDenies(t, p, outcome) || outcome.by != "a-broken" || err != nil {
					t.Errorf("closed: %+v, %v, want a denial by the broken hook", outcome, err)
				}
				return
			}
			failure, ok := errors.AsType[*hook.FailureError](err)
			if !ok || failure.Subscription != "a-broken" || failure.Phase != p.Name() || !errors.Is(err, broken) {
				t.Errorf("closed: the error is %v, want a *hook.FailureError that names hook, phase and cause", err)
			}
		})
	}
}

// failing returns a handler, for any phase, that returns the error.
func failing(err error) func(context.Context, any) (any, error) {
	return func(context.Context, any) (any, error) { return nil, err }
}

// outcomeDenies reports whether an outcome denies.
func outcomeDenies(t *testing.T, p phaseCase, outcome anyOutcome) bool {
	t.Helper()
	answer := outcome.out.(hook.Output).Answer()
	return p.Info().Kind == hook.Gate && answer != nil && answer.Severity >= hook.SeverityDeny
}

func refuseClosed(t *testing.T, p phaseCase) {
	t.Helper()
	rt, err := hook.NewRuntime(belay.Phases(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = rt.Install(p.on("closed", failing(nil), &hook.Options{Failure: hook.Closed}))
	if option, ok := errors.AsType[*hook.OptionError](err); !ok || option.Field != "failure" {
		t.Errorf("an observe phase takes a hook that fails closed: %v", err)
	}
}

// If a gate fails closed, the reason of its denial names the handler that failed.
//
// SPEC H-10
func TestAClosedGateSaysWho(t *testing.T) {
	t.Parallel()
	for _, g := range gates(t) {
		outcome, err := g.dispatch(t.Context(), snapshotOf(t, nil,
			g.on("no-prod", failing(errors.New("the disk is full")),
				&hook.Options{Failure: hook.Closed})), g.in)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.read(outcome.out); got.Reason != "no-prod could not decide: the disk is full" {
			t.Errorf("%s: the reason is %q", g.Name(), got.Reason)
		}
	}
}

// A cancelled dispatch denies at every gate that fails closed, so that nothing passes
// even if the caller ignores the error. The two gates that fail open do not deny: a
// denial at turn.stop would make the model continue, and a denial at approval.request
// would decide for a person.
//
// SPEC H-10
func TestACancelledGateDenies(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	for _, g := range gates(t) {
		outcome, err := g.dispatch(ctx, snapshotOf(t, nil,
			g.on("any", func(context.Context, any) (any, error) { return nil, nil }, nil)), g.in)
		closed := g.Info().Failure == hook.Closed
		if !errors.Is(err, enough) || outcomeDenies(t, g.phaseCase, outcome) != closed {
			t.Errorf("%s: %+v, %v, want the cause, and a denial: %t", g.Name(), outcome.out, err, closed)
		}
	}
}

// SPEC H-10, H-11, H-12
func TestMisbehaviourAtEveryPhase(t *testing.T) {
	t.Parallel()
	for _, p := range everyPhase() {
		answer := withNote(p, belay.Note{Output: "said nevertheless", Audit: []hook.Audit{{Code: "test.said"}}})
		t.Run(p.Name(), func(t *testing.T) {
			t.Parallel()
			p.misbehave(t, fullInput(t, p), answer)
		})
	}
}

// misbehaveAt tries every misbehaviour at a phase, in each failure mode of the phase, as a
// blocking handler and with a deadline.
func misbehaveAt[In any, Out hook.Output](t *testing.T, p hook.Phase[In, Out], in In, answer Out) {
	t.Helper()
	modes := []hook.Failure{hook.Open, p.Fallback(answer)}
	if p.Info().Kind != hook.Observe {
		modes = append(modes, hook.Closed)
	}
	for i := range hooktest.Misbehaviours(p, answer) {
		for _, mode := range modes {
			for _, execution := range []hook.Execution{hook.Blocking, hook.Deadline} {
				m := hooktest.Misbehaviours(p, answer)[i]
				if m.Abandoned && execution == hook.Blocking {
					continue // the dispatch would wait for the handler forever
				}
				if mode == modes[1] && m.Capabilities == hook.NoCapability {
					continue // Install rejects this fallback
				}
				t.Run(m.Name+" "+mode.String()+" "+execution.String(), func(t *testing.T) {
					t.Parallel()
					misbehave(t, p, in, m, mode, execution)
				})
			}
		}
	}
}

func misbehave[In any, Out hook.Output](t *testing.T, p hook.Phase[In, Out], in In, m hooktest.Misbehaviour[In, Out], mode hook.Failure, execution hook.Execution) {
	t.Helper()
	clock := hooktest.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	opts := &hook.Options{Execution: execution, Failure: mode, Capabilities: m.Capabilities, Timeout: time.Minute}
	trial := hooktest.Try(t, p, p.On("misbehaves", m.Handler, opts), in, &hooktest.Options{
		Runtime: hook.RuntimeOptions{Clock: clock},
		Ready:   m.Bind,
		During: func(context.CancelCauseFunc) {
			if m.Deadline {
				clock.WaitTimers(t, 1)
				clock.Advance(2 * time.Minute)
			}
			if m.Abandoned {
				t.Cleanup(m.Release)
			}
		},
	})
	if m.Code == "" {
		trial.Code("")
		trial.Passed()
		return
	}
	trial.Code(m.Code)
	trial.State(m.State())
	if m.Code == codes.Goexit && execution == hook.Blocking {
		return // the handler ended the goroutine, so there is no outcome
	}
	_, failed := errors.AsType[*hook.FailureError](trial.Err)
	switch {
	case mode == hook.Closed && p.Info().Kind == hook.Gate:
		trial.Denied("")
	case mode == hook.Closed && !failed:
		t.Errorf("closed: the error is %v, want a *hook.FailureError", trial.Err)
	case mode == hook.Open:
		trial.Passed()
		if !reflect.ValueOf(trial.Output).IsZero() {
			t.Errorf("open: the outcome is %+v, want nothing", trial.Output)
		}
	case mode != hook.Closed:
		trial.Passed()
		if shown := any(trial.Output).(interface{ Shown() []belay.Shown }).Shown(); len(shown) != 1 {
			t.Errorf("fallback: the hook showed %v, want what its fallback shows", shown)
		}
	}
}
