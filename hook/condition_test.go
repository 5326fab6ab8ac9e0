package hook_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// redactPhase is a collect phase whose handlers may rewrite the text. If a handler fails
// closed, the phase withholds the text.
var redactPhase = hook.Define(hook.Definition[call, edit]{
	Name: "test.redact", Kind: hook.Collect, Capabilities: hook.CanRewriteInput | hook.CanBlock, Labels: callLabels, Scope: callScope,
	Merge: func(_ *hook.Merging, _, answer edit) edit { return answer },
	Rewrite: func(in call, answer edit) (call, error) {
		in.text = answer.Text
		return in, nil
	},
	Closed: func(p hook.Problem) (edit, bool) { return edit{Text: "[withheld]"}, p.Rewrites },
})

// redactor returns a snapshot with one rewriter that fails closed.
func redactor(t testing.TB, match hook.Match) *hook.Snapshot {
	t.Helper()
	rt, err := hook.NewRuntime([]hook.AnyPhase{redactPhase}, nil)
	if err != nil {
		t.Fatal(err)
	}
	install(t, rt, redactPhase.On("redact", says(edit{}), rewriter(hook.Options{Match: match, Failure: hook.Closed})))
	return snapshot(t, rt)
}

// brokenCondition is a condition that fails: fail returns an error or panics.
type brokenCondition struct{ fail func() error }

func (brokenCondition) String() string                 { return "broken" }
func (brokenCondition) Check(hook.AnyPhase, any) error { return nil }
func (c brokenCondition) Holds(any) (bool, error)      { return false, c.fail() }

// A broken condition must let nothing through. At a gate it counts as a match. At other
// phases the handler counts as failed.
//
// SPEC H-10
func TestBrokenConditionFailsByMode(t *testing.T) {
	t.Parallel()
	ways := map[string]func() error{
		"an error": func() error { return errors.New("no such field") },
		"a panic":  func() error { panic("no such field") },
	}
	for name, fail := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			match := hook.Match{When: brokenCondition{fail}}
			rt := newRuntime(t, nil,
				gatePhase.On("gate", says(deny("asked all the same")), &hook.Options{Match: match}),
				collectPhase.On("closed", says(findings{}), &hook.Options{Match: match, Failure: hook.Closed}))
			s := snapshot(t, rt)
			equal(t, "a gate asks its handler", dispatch(t, gatePhase, s, write).Output.Reason, "asked all the same")
			if _, err := collectPhase.Dispatch(t.Context(), s, write); !hasCode(err, codes.MatchFailed) {
				t.Errorf("a collect phase that fails closed: got %v", err)
			}
			equal(t, "on record", runOf(t, s.Take(), "closed").Class, codes.MatchFailed)
			out := dispatch(t, redactPhase, redactor(t, match), write)
			equal(t, "what should have been rewritten", out.Input.text, "[withheld]")
		})
	}
}

func hasCode(err error, code codes.Code) bool {
	failure, ok := errors.AsType[*hook.FailureError](err)
	return ok && failure.Code == code
}

// If a turn is cancelled, the phase withholds the input that a rewriter should have
// changed.
//
// SPEC H-10
func TestCancelledRewriterWithholds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out, err := redactPhase.Dispatch(ctx, redactor(t, hook.Match{}), write)
	if !errors.Is(err, context.Canceled) || out.Input.text != "[withheld]" {
		t.Errorf("got %q, %v; want it withheld, and the cause", out.Input.text, err)
	}
}

// If a condition calls runtime.Goexit, no record is lost.
//
// SPEC H-12, J-01
func TestGoexitInACondition(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]hook.Options{
		"inline":   {},
		"deadline": {Execution: hook.Deadline, Timeout: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts.Match = hook.Match{When: brokenCondition{func() error { runtime.Goexit(); return nil }}}
			opts.After = []string{"a"}
			rt := newRuntime(t, nil, gatePhase.On("a", says(verdict{}), nil), gatePhase.On("b", says(verdict{}), &opts))
			s := snapshot(t, rt)
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = gatePhase.Dispatch(t.Context(), s, write)
				t.Error("the dispatch returned")
			}()
			<-done
			equal(t, "the run before it", runOf(t, s.Take(), "a").State, hook.Completed)
			dispatch(t, collectPhase, s, write) // The snapshot is still usable.
		})
	}
}

// SPEC H-10
func TestAnswerInItsPlaceThatCannotBeApplied(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil, rewritePhase.On("a", fails[edit](errors.New("no")), rewriter(hook.Options{
		Failure: rewritePhase.Fallback(edit{Text: "unfit"}),
	})))
	out, err := rewritePhase.Dispatch(t.Context(), snapshot(t, rt), write)
	if !hasCode(err, codes.OutputInvalid) || !errors.Is(err, errUnfit) || out.Output.Severity != hook.SeverityDeny {
		t.Errorf("got %+v, %v; want a denial: the input must not pass as it was", out.Output, err)
	}
}

// SPEC H-01, H-10
func TestGateMustDenyWhenItFailsClosed(t *testing.T) {
	t.Parallel()
	def := hook.Definition[call, verdict]{
		Name: "test.lenient", Kind: hook.Gate,
		Merge:  func(_ *hook.Merging, merged, _ verdict) verdict { return merged },
		Closed: func(hook.Problem) (verdict, bool) { return verdict{}, true },
	}
	if _, err := hook.NewRuntime([]hook.AnyPhase{hook.Define(def)}, nil); err == nil || !strings.Contains(err.Error(), "must deny") {
		t.Errorf("got %v, want it refused", err)
	}
}
