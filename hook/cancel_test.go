package hook_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

var errEscape = errors.New("the user pressed escape")

// If the turn is cancelled, no handler is called, and gates deny in every failure mode.
//
// SPEC H-10
func TestCancelledContextAtAGate(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]hook.Options{
		"inline": {}, "concurrent": {Concurrent: true}, "deadline": {Execution: hook.Deadline, Timeout: time.Second},
		"open": {Failure: hook.Open}, "fallback": {Failure: gatePhase.Fallback(verdict{})}, "open, deadline": {Failure: hook.Open, Execution: hook.Deadline, Timeout: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked trail
			rt := newRuntime(t, nil, gatePhase.On("a", asked.gate("a"), &o))
			s := snapshot(t, rt)
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(errEscape)
			out, err := gatePhase.Dispatch(ctx, s, write)
			if !errors.Is(err, errEscape) {
				t.Errorf("error: got %v, want the cause of the cancel", err)
			}
			equal(t, "verdict", out.Output.Severity, hook.SeverityDeny)
			equal(t, "asked", len(asked.all()), 0)
			equal(t, "runs", brief(s.Take()), "a:skipped(hook.canceled)")
		})
	}
}

// SPEC H-10
func TestCancelBetweenHandlers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(context.Background())
	var asked trail
	rt := newRuntime(t, nil,
		gatePhase.On("a", does[verdict](func(context.Context, call) { cancel(errEscape) }), nil),
		gatePhase.On("b", asked.gate("b"), nil),
		gatePhase.On("c", asked.gate("c"), &hook.Options{Concurrent: true}),
		collectPhase.On("a", says(note("never")), nil))
	s := snapshot(t, rt)
	out, err := gatePhase.Dispatch(ctx, s, write)
	if !errors.Is(err, errEscape) || out.Output.Severity != hook.SeverityDeny {
		t.Errorf("gate: got %v, %v; want a denial and the cause", out.Output, err)
	}
	equal(t, "asked", len(asked.all()), 0)
	collected, err := collectPhase.Dispatch(ctx, s, write)
	if !errors.Is(err, errEscape) || len(collected.Output.Notes) > 0 {
		t.Errorf("collect: got %v, %v; want nothing and the cause", collected.Output, err)
	}
	equal(t, "runs", brief(s.Take()), "a:completed b:skipped(hook.canceled) c:skipped(hook.canceled) a:skipped(hook.canceled)")
}

// If the turn is cancelled while a handler runs, the handler has failed, and its record
// says so. The gate denies in every failure mode, because the turn has ended.
//
// SPEC H-10, H-11
func TestCancelDuringAHandler(t *testing.T) {
	t.Parallel()
	for _, failure := range []hook.Failure{hook.Closed, hook.Open} {
		for _, w := range ways {
			for _, heeds := range []bool{true, false} {
				if !heeds && w.name != "deadline" {
					continue // The dispatch waits for these handlers, so their answer counts.
				}
				t.Run(w.name+" "+failure.String(), func(t *testing.T) {
					t.Parallel()
					bubble(t, func(t *testing.T) {
						o := w.opts
						o.Timeout, o.Failure = time.Hour, failure
						rt := newRuntime(t, nil, gatePhase.On("a", func(ctx context.Context, _ call) (verdict, error) {
							if !heeds {
								time.Sleep(time.Minute)
								return ask("late"), nil
							}
							<-ctx.Done()
							return verdict{}, ctx.Err()
						}, &o))
						s := snapshot(t, rt)
						ctx, cancel := context.WithCancelCause(t.Context())
						time.AfterFunc(time.Second, func() { cancel(errEscape) })
						began := time.Now()
						out, err := gatePhase.Dispatch(ctx, s, write)
						equal(t, "time", time.Since(began), time.Second)
						equal(t, "verdict", out.Output.Severity, hook.SeverityDeny)
						if !errors.Is(err, errEscape) {
							t.Errorf("error: got %v, want the cause of the cancel", err)
						}
						equal(t, "runs", brief(s.Take()), "a:failed(hook.canceled)")
					})
				})
			}
		}
	}
}

// If an outer timeout ends the turn before the handler's own timeout, the handler was
// cancelled. It did not time out.
//
// SPEC H-11, J-01
func TestTimeoutFurtherOutIsACancel(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				inner := w.opts
				inner.Timeout = time.Hour
				rt := newRuntime(t, nil)
				var turn *hook.Snapshot
				install(t, rt,
					collectPhase.On("inner", func(ctx context.Context, _ call) (findings, error) {
						if inner.Execution == hook.Deadline {
							time.Sleep(time.Minute) // This handler can be abandoned.
						}
						<-ctx.Done()
						return findings{}, ctx.Err()
					}, &inner),
					gatePhase.On("outer", func(ctx context.Context, in call) (verdict, error) {
						_, err := collectPhase.Dispatch(ctx, turn, in)
						return verdict{}, err
					}, &hook.Options{Execution: hook.Deadline, Timeout: time.Second}))
				turn = snapshot(t, rt)
				dispatch(t, gatePhase, turn, write)
				synctest.Wait()
				runs := turn.Take()
				equal(t, "class of the outer", runOf(t, runs, "outer").Class, codes.Timeout)
				equal(t, "class of the inner", runOf(t, runs, "inner").Class, codes.Canceled)
			})
		})
	}
}

// The records of a turn are kept even if the turn is aborted.
//
// SPEC J-03
func TestRecordsSurviveTheAbort(t *testing.T) {
	t.Parallel()
	journal := &fragileJournal{}
	rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal}, gatePhase.On("a", says(verdict{}), nil))
	s := rt.Snapshot()
	dispatch(t, gatePhase, s, write)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Release(ctx); err != nil {
		t.Fatal(err)
	}
	equal(t, "runs", brief(journal.all()), "a:completed")
}
