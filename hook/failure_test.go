package hook_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

var errBroken = errors.New("the handler is broken")

// misdeed is one kind of failure of a handler.
type misdeed struct {
	name  string
	code  codes.Code
	state hook.State
	// alone says that the failure can be tested only with a handler on its own goroutine.
	alone bool
	do    func(ctx context.Context) error
}

// misdeeds are the failures that any handler can have.
var misdeeds = []misdeed{
	{"an error", codes.Error, hook.Failed, false, func(context.Context) error { return errBroken }},
	{"a panic", codes.Panic, hook.Failed, false, func(context.Context) error { panic("the handler is broken") }},
	{"a nil panic", codes.Panic, hook.Failed, false, func(context.Context) error { panic(nil) }},
	{"a goexit", codes.Goexit, hook.Failed, true, func(context.Context) error { runtime.Goexit(); return nil }},
	{"a timeout", codes.Timeout, hook.TimedOut, false, func(ctx context.Context) error { <-ctx.Done(); return nil }},
	{"a timeout with an error", codes.Timeout, hook.TimedOut, false, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
	{"a malformed answer", codes.OutputInvalid, hook.Failed, false, func(context.Context) error {
		return fmt.Errorf("decode: %w", &hook.SafeError{Code: codes.OutputInvalid, Message: "no JSON"})
	}},
	{"a missing executable", codes.ExecutableMissing, hook.Failed, false, func(context.Context) error {
		return &hook.SafeError{Code: codes.ExecutableMissing, Message: "no such file"}
	}},
}

// ways lists the executions in which the dispatch waits for the handler.
var ways = []struct {
	name  string
	alone bool
	opts  hook.Options
}{
	{"inline", false, hook.Options{Timeout: time.Second}},
	{"concurrent", true, hook.Options{Concurrent: true, Timeout: time.Second}},
	{"deadline", true, hook.Options{Execution: hook.Deadline, Timeout: time.Second}},
}

// eachFailure runs a test for every misdeed in every execution of ways.
func eachFailure(t *testing.T, test func(t *testing.T, m misdeed, o hook.Options)) {
	t.Helper()
	for _, m := range misdeeds {
		for _, w := range ways {
			if m.alone && !w.alone {
				continue
			}
			t.Run(m.name+", "+w.name, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) { test(t, m, w.opts) })
			})
		}
	}
}

// commits returns a handler that fails as the misdeed says.
func commits[Out hook.Output](m misdeed) hook.Handler[call, Out] {
	return func(ctx context.Context, _ call) (Out, error) {
		var none Out
		return none, m.do(ctx)
	}
}

// checkFailure compares the record and the diagnostics with the expected
// failure.
func checkFailure(t *testing.T, m misdeed, runs []hook.Run, diags []hook.Diagnostic) {
	t.Helper()
	if len(diags) != 1 || diags[0].Code != m.code || diags[0].Subscription != "bad" {
		t.Fatalf("diagnostics: got %v, want one of %s about bad", diags, m.code)
	}
	run := runOf(t, runs, "bad")
	equal(t, "state", run.State, m.state)
	equal(t, "class", run.Class, m.code)
	if len(run.Diagnostics) != 1 || run.Diagnostics[0].Code != m.code || run.Diagnostics[0].Level != m.code.Level() {
		t.Errorf("diagnostics of the run: %v", run.Diagnostics)
	}
}

// SPEC H-10, H-17
func TestGateThatFailsClosedDenies(t *testing.T) {
	t.Parallel()
	eachFailure(t, func(t *testing.T, m misdeed, o hook.Options) {
		rt := newRuntime(t, nil, // Closed is the default of a gate.
			gatePhase.On("bad", commits[verdict](m), &o),
			gatePhase.On("next", says(verdict{}), &hook.Options{After: []string{"bad"}}))
		s := snapshot(t, rt)
		out := dispatch(t, gatePhase, s, write)
		equal(t, "verdict", out.Output.Severity, hook.SeverityDeny)
		equal(t, "by", out.By, "bad")
		runs := s.Take()
		checkFailure(t, m, runs, out.Diagnostics)
		equal(t, "severity on record", runOf(t, runs, "bad").Severity, hook.SeverityDeny)
		equal(t, "the dependent", runOf(t, runs, "next").State, hook.Skipped)
	})
}

// SPEC H-10
func TestGateThatFailsOpenGoesOn(t *testing.T) {
	t.Parallel()
	eachFailure(t, func(t *testing.T, m misdeed, o hook.Options) {
		o.Failure = hook.Open
		rt := newRuntime(t, nil,
			gatePhase.On("bad", commits[verdict](m), &o),
			gatePhase.On("next", says(ask("sure?")), &hook.Options{After: []string{"bad"}}))
		s := snapshot(t, rt)
		out := dispatch(t, gatePhase, s, write)
		equal(t, "verdict", out.Output.Severity, hook.SeverityAsk)
		equal(t, "by", out.By, "next")
		runs := s.Take()
		checkFailure(t, m, runs, out.Diagnostics)
		equal(t, "the dependent", runOf(t, runs, "next").State, hook.Completed)
	})
}

// SPEC H-10
func TestGateThatFailsWithAFallbackUsesIt(t *testing.T) {
	t.Parallel()
	eachFailure(t, func(t *testing.T, m misdeed, o hook.Options) {
		o.Failure = gatePhase.Fallback(verdict{Severity: hook.SeverityAsk, Reason: "unsure", Context: []string{"it failed"}})
		rt := newRuntime(t, nil,
			gatePhase.On("bad", commits[verdict](m), &o),
			gatePhase.On("next", says(ask("later")), &hook.Options{After: []string{"bad"}}))
		s := snapshot(t, rt)
		out := dispatch(t, gatePhase, s, write)
		equal(t, "verdict", out.Output.Severity, hook.SeverityAsk)
		equal(t, "reason", out.Output.Reason, "unsure")
		equal(t, "by", out.By, "bad")
		same(t, "context", out.Output.Context, []string{"it failed"})
		runs := s.Take()
		checkFailure(t, m, runs, out.Diagnostics)
		equal(t, "the dependent", runOf(t, runs, "next").State, hook.Completed)
	})
}

// SPEC H-10
func TestCollectThatFailsClosedEndsTheTurn(t *testing.T) {
	t.Parallel()
	eachFailure(t, func(t *testing.T, m misdeed, o hook.Options) {
		o.Failure = hook.Closed
		rt := newRuntime(t, nil,
			collectPhase.On("a-good", says(note("kept")), nil),
			collectPhase.On("bad", commits[findings](m), &o),
			collectPhase.On("next", says(note("never")), &hook.Options{After: []string{"bad"}}))
		s := snapshot(t, rt)
		out, err := collectPhase.Dispatch(t.Context(), s, write)
		failure, ok := errors.AsType[*hook.FailureError](err)
		if !ok || failure.Subscription != "bad" || failure.Phase != "test.collect" || failure.Code != m.code {
			t.Fatalf("got error %v, want a *FailureError of bad with %s", err, m.code)
		}
		same(t, "notes", out.Output.Notes, []string{"kept"})
		runs := s.Take()
		checkFailure(t, m, runs, out.Diagnostics)
		equal(t, "what came before", runOf(t, runs, "a-good").State, hook.Completed)
		equal(t, "the dependent", runOf(t, runs, "next").State, hook.Skipped)
	})
}

// SPEC H-10
func TestCollectThatFailsClosedWithholds(t *testing.T) {
	t.Parallel()
	eachFailure(t, func(t *testing.T, m misdeed, o hook.Options) {
		o.Failure = hook.Closed
		rt := newRuntime(t, nil,
			withholdPhase.On("bad", commits[findings](m), &o),
			withholdPhase.On("next", says(note("next")), &hook.Options{After: []string{"bad"}}))
		s := snapshot(t, rt)
		out := dispatch(t, withholdPhase, s, write)
		same(t, "notes", out.Output.Notes, []string{"withheld", "next"})
		checkFailure(t, m, s.Take(), out.Diagnostics)
	})
}

// Open is the default of all phases except gates.
//
// SPEC H-10
func TestCollectThatFailsOpenGoesOn(t *testing.T) {
	t.Parallel()
	eachFailure(t, func(t *testing.T, m misdeed, o hook.Options) {
		rt := newRuntime(t, nil,
			collectPhase.On("bad", commits[findings](m), &o),
			collectPhase.On("next", says(note("next")), &hook.Options{After: []string{"bad"}}))
		s := snapshot(t, rt)
		out := dispatch(t, collectPhase, s, write)
		same(t, "notes", out.Output.Notes, []string{"next"})
		checkFailure(t, m, s.Take(), out.Diagnostics)
	})
}

// SPEC H-10
func TestCollectThatFailsWithAFallbackUsesIt(t *testing.T) {
	t.Parallel()
	eachFailure(t, func(t *testing.T, m misdeed, o hook.Options) {
		o.Failure = collectPhase.Fallback(note("fallback"))
		rt := newRuntime(t, nil,
			collectPhase.On("a-good", says(note("first")), nil),
			collectPhase.On("bad", commits[findings](m), &o),
			collectPhase.On("next", says(note("next")), &hook.Options{After: []string{"bad"}}))
		s := snapshot(t, rt)
		out := dispatch(t, collectPhase, s, write)
		same(t, "notes", out.Output.Notes, []string{"first", "fallback", "next"})
		checkFailure(t, m, s.Take(), out.Diagnostics)
	})
}

// SPEC H-10
func TestObserverThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	eachFailure(t, func(t *testing.T, m misdeed, o hook.Options) {
		rt := newRuntime(t, nil,
			observePhase.On("bad", commits[remark](m), &o),
			observePhase.On("next", says(remarks("seen")), &hook.Options{After: []string{"bad"}}))
		s := snapshot(t, rt)
		out := dispatch(t, observePhase, s, write)
		runs := s.Take()
		checkFailure(t, m, runs, out.Diagnostics)
		equal(t, "the dependent", runOf(t, runs, "next").State, hook.Completed)
	})
}

// SPEC H-10, H-12
func TestFallbackWithoutAnOpinion(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil,
		gatePhase.On("a", fails[verdict](errBroken), &hook.Options{Failure: gatePhase.Fallback(verdict{})}),
		pagePhase.On("a", fails[*page](errBroken), &hook.Options{Failure: pagePhase.Fallback(nil)}),
		pagePhase.On("b", says(&page{Lines: []string{"b"}}), nil))
	s := snapshot(t, rt)
	equal(t, "verdict", dispatch(t, gatePhase, s, write).Output.Severity, hook.SeverityPass)
	out := dispatch(t, pagePhase, s, write)
	if out.Output == nil || len(out.Output.Lines) != 1 {
		t.Errorf("page: got %v, want one line", out.Output)
	}
}

// SPEC H-10
func TestFallbackThatDeniesStopsThePhase(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil,
		gatePhase.On("a", fails[verdict](errBroken), &hook.Options{Failure: gatePhase.Fallback(deny("unsure"))}),
		gatePhase.On("b", says(verdict{}), nil))
	s := snapshot(t, rt)
	equal(t, "reason", dispatch(t, gatePhase, s, write).Output.Reason, "unsure")
	equal(t, "runs", brief(s.Take()), "a:failed(hook.error) b:skipped(hook.skipped)")
}

// Dispatch reports the first failure in plan order, even if another handler failed earlier
// in time.
//
// SPEC H-07, H-10
func TestFirstFailureInPlanOrderIsReported(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		o := &hook.Options{Concurrent: true, Failure: hook.Closed}
		rt := newRuntime(t, nil,
			collectPhase.On("a", func(context.Context, call) (findings, error) {
				time.Sleep(time.Second)
				return findings{}, errors.New("slow")
			}, o),
			collectPhase.On("b", fails[findings](errors.New("quick")), o))
		_, err := collectPhase.Dispatch(t.Context(), snapshot(t, rt), write)
		if failure, ok := errors.AsType[*hook.FailureError](err); !ok || failure.Subscription != "a" {
			t.Errorf("got %v, want the failure of a", err)
		}
	})
}

// Dispatch reports the earliest failure in plan order, whatever the execution. A handler
// that overlaps may fail before a handler with an earlier position has begun.
//
// SPEC H-07, H-10
func TestEarliestFailureIsReportedHoweverHandlersRun(t *testing.T) {
	t.Parallel()
	ways := []hook.Options{{}, {Concurrent: true}, {Execution: hook.Deadline, Timeout: time.Minute}}
	const handlers = 3
	for plan := range 27 {
		for failing := range 1 << handlers {
			var subs []hook.Subscription
			want, names := "", ""
			for i, rest := 0, plan; i < handlers; i, rest = i+1, rest/len(ways) {
				id, opts := string(rune('a'+i)), ways[rest%len(ways)]
				opts.Failure = hook.Closed
				handler := says(findings{})
				if failing&(1<<i) != 0 {
					handler = fails[findings](errBroken)
					if want == "" {
						want = id
					}
				}
				names += fmt.Sprintf(" %s %s concurrent=%t", id, opts.Execution, opts.Concurrent)
				subs = append(subs, collectPhase.On(id, handler, &opts))
			}
			_, err := collectPhase.Dispatch(t.Context(), snapshot(t, newRuntime(t, nil, subs...)), write)
			got := ""
			if failure, ok := errors.AsType[*hook.FailureError](err); ok {
				got = failure.Subscription
			}
			if got != want {
				t.Errorf("%s, and %03b fail: the failure of %q is reported, want %q", names, failing, got, want)
			}
		}
	}
}

// SPEC H-10
func TestFailureErrorKeepsTheCause(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil, collectPhase.On("a", fails[findings](errBroken), &hook.Options{Failure: hook.Closed}))
	_, err := collectPhase.Dispatch(context.Background(), snapshot(t, rt), write)
	if !errors.Is(err, errBroken) {
		t.Errorf("got %v, want it to wrap the handler's error", err)
	}
}
