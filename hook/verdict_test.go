package hook_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belay-run/belay/hook"
)

// SPEC H-17
func TestVerdicts(t *testing.T) {
	t.Parallel()
	pass := verdict{}
	for _, test := range []struct {
		rule    string
		answers []verdict // the answers of a, b and c, in plan order
		by      string
		want    hook.Severity
		runs    string
	}{
		{"all hooks pass", []verdict{pass, pass, pass}, "", hook.SeverityPass, "a:completed b:completed c:completed"},
		{"one asks", []verdict{pass, ask("1"), pass}, "b", hook.SeverityAsk, "a:completed b:completed c:completed"},
		{"of equal verdicts the earlier one counts", []verdict{ask("1"), ask("2"), pass}, "a", hook.SeverityAsk, "a:completed b:completed c:completed"},
		{"deny beats ask from an earlier hook", []verdict{ask("1"), pass, deny("2")}, "c", hook.SeverityDeny, "a:completed b:completed c:completed"},
		{"deny beats ask from a later hook, which does not run", []verdict{deny("1"), ask("2"), pass}, "a", hook.SeverityDeny, "a:completed b:skipped(hook.skipped) c:skipped(hook.skipped)"},
		{"halt beats ask", []verdict{ask("1"), halt("2"), pass}, "b", hook.SeverityHalt, "a:completed b:completed c:skipped(hook.skipped)"},
		{"after halt no other hook runs", []verdict{halt("1"), deny("2"), pass}, "a", hook.SeverityHalt, "a:completed b:skipped(hook.skipped) c:skipped(hook.skipped)"},
		{"after ask the other hooks still run", []verdict{ask("1"), pass, pass}, "a", hook.SeverityAsk, "a:completed b:completed c:completed"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			rt := newRuntime(t, nil)
			for i, answer := range test.answers {
				install(t, rt, gatePhase.On(string(rune('a'+i)), says(answer), nil))
			}
			s := snapshot(t, rt)
			out := dispatch(t, gatePhase, s, write)
			equal(t, "verdict", out.Output.Severity, test.want)
			equal(t, "by", out.By, test.by)
			if test.by != "" {
				equal(t, "reason", out.Output.Reason, test.answers[test.by[0]-'a'].Reason)
			}
			equal(t, "runs", brief(s.Take()), test.runs)
		})
	}
}

// Several handlers can overlap, and one of them denies. The verdicts of the others count
// too, and the most severe verdict wins.
//
// SPEC H-07, H-17
func TestVerdictsOfHandlersThatOverlap(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		var started trail
		say := func(id string, takes time.Duration, v verdict) hook.Handler[call, verdict] {
			return func(context.Context, call) (verdict, error) {
				started.add(id)
				time.Sleep(takes)
				return v, nil
			}
		}
		together := &hook.Options{Concurrent: true}
		rt := newRuntime(t, nil,
			gatePhase.On("a", say("a", time.Second, deny("a")), together),
			gatePhase.On("b", say("b", 0, ask("b")), together),
			gatePhase.On("c", say("c", 2*time.Second, halt("c")), together),
			gatePhase.On("d", say("d", 0, halt("d")), &hook.Options{Concurrent: true, After: []string{"b"}}),
			gatePhase.On("e", say("e", 0, verdict{}), nil),
		)
		s := snapshot(t, rt)
		out := dispatch(t, gatePhase, s, write)
		equal(t, "by", out.By, "c")
		equal(t, "reason", out.Output.Reason, "c")
		equal(t, "started", len(started.all()), 3)
		equal(t, "runs", brief(s.Take()), "a:completed b:completed c:completed d:skipped(hook.skipped) e:skipped(hook.skipped)")
	})
}

// In every plan, the most severe verdict wins, or the earlier one if two are equal. After a
// denial, no handler with a later position starts. Every handler is recorded.
//
// SPEC H-17
func TestVerdictsAgainstReference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(rt, "gates")
		says := make([]hook.Severity, n)
		where := make([]int, n) // 0: inline; otherwise overlapping
		var asked trail
		var subs []hook.Subscription
		for i := range n {
			says[i] = hook.Severity(rapid.SampledFrom([]int{0, 0, 0, 1, 1, 2, 3}).Draw(rt, "severity"))
			where[i] = rapid.IntRange(0, 1).Draw(rt, "overlapping")
			id := fmt.Sprint("n", i)
			subs = append(subs, gatePhase.On(id, func(context.Context, call) (verdict, error) {
				asked.add(id)
				return verdict{Severity: says[i], Reason: id}, nil
			}, &hook.Options{Concurrent: where[i] == 1}))
		}
		// The reference walks through the plan. The first overlapping handler starts all
		// overlapping handlers. An inline handler starts at its own position.
		wantAsked, stop, together := map[int]bool{}, n, false
		start := func(i int) {
			if i <= stop {
				wantAsked[i] = true
			}
		}
		settle := func() {
			for i := range wantAsked {
				if says[i] >= hook.SeverityDeny {
					stop = min(stop, i)
				}
			}
		}
		for i := range n {
			switch {
			case where[i] == 0:
				start(i)
			case !together:
				together = true
				for j := i; j < n; j++ {
					if where[j] == 1 {
						start(j)
					}
				}
			}
			settle()
		}
		by, worst := "", hook.SeverityPass
		for i := range n {
			if wantAsked[i] && says[i] > worst {
				by, worst = fmt.Sprint("n", i), says[i]
			}
		}
		runtime := newRuntime(t, nil, subs...)
		s := snapshot(t, runtime)
		out := dispatch(t, gatePhase, s, write)
		if out.By != by || out.Output.Severity != worst || out.Output.Reason != by {
			rt.Fatalf("%v %v: got %v by %q, want %v by %q", says, where, out.Output.Severity, out.By, worst, by)
		}
		runs := s.Take()
		if len(runs) != n || len(asked.all()) != len(wantAsked) {
			rt.Fatalf("%d runs, %d asked; want %d, %d", len(runs), len(asked.all()), n, len(wantAsked))
		}
		for _, r := range runs {
			var i int
			if _, err := fmt.Sscanf(r.Subscription, "n%d", &i); err != nil {
				rt.Fatal(err)
			}
			if (r.State == hook.Completed) != wantAsked[i] || (r.State == hook.Skipped) == wantAsked[i] {
				rt.Fatalf("%v %v: %s is %s, asked is %t", says, where, r.Subscription, r.State, wantAsked[i])
			}
			if r.State == hook.Completed && r.Severity != says[i] {
				rt.Fatalf("%s is recorded with severity %s, it said %s", r.Subscription, r.Severity, says[i])
			}
		}
	})
}

// The other contributions of all handlers are kept, whichever verdict wins.
//
// SPEC H-17
func TestContextIsKeptWithEveryVerdict(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil,
		gatePhase.On("a", says(verdict{Context: []string{"mind the step"}}), nil),
		gatePhase.On("b", says(verdict{Severity: hook.SeverityDeny, Context: []string{"the floor is wet"}}), nil),
	)
	out := dispatch(t, gatePhase, snapshot(t, rt), write)
	equal(t, "by", out.By, "b")
	same(t, "context", out.Output.Context, []string{"mind the step", "the floor is wet"})
}

// At a phase that is not a gate, a verdict changes nothing: later handlers are still
// called.
//
// SPEC H-01, H-17
func TestSeverityMeansNothingWhereNothingCanBeStopped(t *testing.T) {
	t.Parallel()
	def := hook.Definition[call, verdict]{
		Name: "test.powerless", Kind: hook.Collect, Capabilities: hook.CanBlock | hook.CanAddContext,
		Merge: func(_ *hook.Merging, merged, answer verdict) verdict {
			merged.Context = append(merged.Context, answer.Context...)
			return merged
		},
	}
	phase := hook.Define(def)
	for name, o := range map[string]*hook.Options{"inline": nil, "overlapping": {Concurrent: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rt, err := hook.NewRuntime([]hook.AnyPhase{phase}, nil)
			if err != nil {
				t.Fatal(err)
			}
			install(t, rt,
				phase.On("a", says(verdict{Severity: hook.SeverityHalt, Reason: "stop", Context: []string{"a"}}), o),
				phase.On("b", says(verdict{Context: []string{"b"}}), nil))
			s := snapshot(t, rt)
			out := dispatch(t, phase, s, write)
			same(t, "what was merged", out.Output.Context, []string{"a", "b"})
			equal(t, "by", out.By, "")
			runs := s.Take()
			equal(t, "runs", brief(runs), "a:completed b:completed")
			equal(t, "who won, as the record tells it", hook.ExplainRuns(phase.Plan(s), runs)[0].Won, "")
		})
	}
}
