package hook_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// adds returns a rewriter that appends more to the text of its input.
func adds(more string) hook.Handler[call, edit] {
	return func(_ context.Context, in call) (edit, error) { return edit{Text: in.text + more}, nil }
}

// SPEC H-05, H-07
func TestRewritersComeFirstAndSeeWhatTheOneBeforeLeft(t *testing.T) {
	t.Parallel()
	var seen trail
	look := func(id string) hook.Handler[call, edit] {
		return does[edit](func(_ context.Context, in call) { seen.add(id + ":" + in.text) })
	}
	rt := newRuntime(t, nil,
		rewritePhase.On("a-gate", look("a-gate"), nil),
		rewritePhase.On("b-gate", look("b-gate"), &hook.Options{Concurrent: true, Priority: -9}),
		rewritePhase.On("c-gate", look("c-gate"), &hook.Options{Execution: hook.Deadline, Timeout: time.Minute}),
		rewritePhase.On("z", adds("+z"), rewriter(hook.Options{Priority: 9})),
		rewritePhase.On("y", adds("+y"), rewriter(hook.Options{Execution: hook.Deadline, Timeout: time.Minute})),
		rewritePhase.On("x", adds("+x"), rewriter(hook.Options{Timeout: time.Minute})),
		rewritePhase.On("silent", look("silent"), rewriter(hook.Options{Priority: 1})),
	)
	out := dispatch(t, rewritePhase, snapshot(t, rt), write)
	equal(t, "input", out.Input.text, "hello+x+y+z")
	same(t, "rewriters", out.Rewriters, []string{"x", "y", "z"})
	saw := seen.all()
	slices.Sort(saw)
	same(t, "what the others saw", saw, []string{"a-gate:hello+x+y+z", "b-gate:hello+x+y+z", "c-gate:hello+x+y+z", "silent:hello+x+y"})
	equal(t, "the caller's input", write.text, "hello")
}

// SPEC H-07
func TestRewritersRunOneAtATime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(rt, "rewriters")
		var total time.Duration
		want := "hello"
		var subs []hook.Subscription
		for i := range n {
			o := rewriter(hook.Options{})
			if rapid.Bool().Draw(rt, "deadline") {
				o.Execution, o.Timeout = hook.Deadline, time.Hour
			}
			takes := time.Duration(rapid.IntRange(0, 5).Draw(rt, "seconds")) * time.Second
			total += takes
			more := fmt.Sprint("+", i)
			want += more
			subs = append(subs, rewritePhase.On(fmt.Sprint("n", i), func(ctx context.Context, in call) (edit, error) {
				time.Sleep(takes)
				return adds(more)(ctx, in)
			}, o))
		}
		bubble(t, func(t *testing.T) {
			runtime := newRuntime(t, nil, rapid.Permutation(subs).Draw(rt, "registration")...)
			began := time.Now()
			out := dispatch(t, rewritePhase, snapshot(t, runtime), write)
			equal(t, "input", out.Input.text, want)
			equal(t, "time", time.Since(began), total)
		})
		if t.Failed() {
			rt.FailNow()
		}
	})
}

// The runtime reads labels from the current input, directly before it calls a handler. So
// gates check the final input.
//
// SPEC H-02, H-07
func TestMatchLooksAtTheRewrittenInput(t *testing.T) {
	t.Parallel()
	for _, how := range []hook.Options{{}, {Concurrent: true}} {
		prod, hello := how, how
		prod.Match = hook.Match{Labels: map[string][]string{"lang": {"prod"}}}
		hello.Match = hook.Match{When: hook.When("hello", func(c call) bool { return c.text == "hello" })}
		rt := newRuntime(t, nil,
			rewritePhase.On("rewriter", says(edit{Text: "prod"}), rewriter(hook.Options{})),
			rewritePhase.On("guard", says(edit{Severity: hook.SeverityDeny}), &prod),
			rewritePhase.On("never", says(edit{Severity: hook.SeverityHalt}), &hello),
		)
		equal(t, "who won", dispatch(t, rewritePhase, snapshot(t, rt), write).By, "guard")
	}
}

// SPEC H-07, H-10, H-12
func TestRewritingThatCannotBeApplied(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"unfit", "broken"} { // Rewrite returns an error, or panics.
		for _, test := range []struct {
			rule    string
			failure hook.Failure
			want    string // the final text; empty: the call is denied
		}{
			{"closed denies", hook.Closed, ""},
			{"open leaves the input as it was", hook.Open, "hello+y"},
			{"the fallback is applied in its place", rewritePhase.Fallback(edit{Text: "safe"}), "safe+y"},
		} {
			t.Run(text+": "+test.rule, func(t *testing.T) {
				t.Parallel()
				rt := newRuntime(t, nil,
					rewritePhase.On("x", says(edit{Text: text}), rewriter(hook.Options{Failure: test.failure})),
					rewritePhase.On("y", adds("+y"), rewriter(hook.Options{})),
				)
				s := snapshot(t, rt)
				out := dispatch(t, rewritePhase, s, write)
				same(t, "diagnostics", codesOf(out.Diagnostics), []codes.Code{codes.OutputInvalid})
				run := runOf(t, s.Take(), "x")
				equal(t, "state", run.State, hook.Failed)
				equal(t, "class", run.Class, codes.OutputInvalid)
				if test.want == "" {
					equal(t, "verdict", out.Output.Severity, hook.SeverityDeny)
					equal(t, "input", out.Input.text, "hello")
					return
				}
				equal(t, "verdict", out.Output.Severity, hook.SeverityPass)
				equal(t, "input", out.Input.text, test.want)
			})
		}
	}
}

// If a rewriter fails, the rewrite of its fallback is applied, like that of any other
// answer.
//
// SPEC H-10
func TestFallbackOfARewriterRewrites(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]hook.Options{"inline": {}, "with a deadline": {Execution: hook.Deadline, Timeout: time.Minute}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Failure = rewritePhase.Fallback(edit{Text: "redacted"})
			rt := newRuntime(t, nil,
				rewritePhase.On("x", fails[edit](errUnfit), rewriter(o)),
				rewritePhase.On("y", adds("+y"), rewriter(hook.Options{})),
			)
			out := dispatch(t, rewritePhase, snapshot(t, rt), write)
			equal(t, "input", out.Input.text, "redacted+y")
			same(t, "rewriters", out.Rewriters, []string{"x", "y"})
		})
	}
}

// A handler can rewrite only if its subscription declares it.
//
// SPEC H-07, H-15
func TestOnlyDeclaredRewritersRewrite(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil, rewritePhase.On("x", adds("+x"), &hook.Options{Failure: hook.Open}))
	out := dispatch(t, rewritePhase, snapshot(t, rt), write)
	equal(t, "input", out.Input.text, "hello")
	equal(t, "rewriters", len(out.Rewriters), 0)
	same(t, "diagnostics", codesOf(out.Diagnostics), []codes.Code{codes.CapabilityMissing})
	if !strings.Contains(out.Diagnostics[0].Message, "rewrite_input") {
		t.Errorf("the diagnostic does not name what is missing: %v", out.Diagnostics[0])
	}
}
