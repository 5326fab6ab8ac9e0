package hook_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// slowly returns a handler that sleeps for d and then contributes its name as a note.
func slowly(d time.Duration, name string) hook.Handler[call, findings] {
	return func(context.Context, call) (findings, error) {
		time.Sleep(d)
		return note(name), nil
	}
}

// SPEC H-07
func TestOverlap(t *testing.T) {
	t.Parallel()
	concurrent := hook.Options{Concurrent: true}
	deadline := hook.Options{Execution: hook.Deadline, Timeout: time.Minute}
	with := func(o hook.Options, after ...string) *hook.Options { o.After = after; return &o }
	for _, test := range []struct {
		rule string
		opts []*hook.Options // the options of a, b and c; each handler takes a second
		want time.Duration
	}{
		{"inline handlers take turns", []*hook.Options{nil, nil, nil}, 3 * time.Second},
		{"concurrent handlers run at the same time", []*hook.Options{&concurrent, &concurrent, &concurrent}, time.Second},
		{"deadline handlers run at the same time", []*hook.Options{&deadline, &deadline, &deadline}, time.Second},
		{"concurrent and deadline handlers run at the same time", []*hook.Options{&deadline, &concurrent, &deadline}, time.Second},
		{"a level waits for the previous level", []*hook.Options{&concurrent, with(concurrent, "a"), with(deadline, "a")}, 2 * time.Second},
		{"a chain does not overlap", []*hook.Options{&deadline, with(deadline, "a"), with(concurrent, "b")}, 3 * time.Second},
		{"an inline handler does not overlap with other handlers", []*hook.Options{nil, &concurrent, &concurrent}, 2 * time.Second},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				rt := newRuntime(t, nil)
				var subs []hook.Subscription
				for i, o := range test.opts {
					id := string(rune('a' + i))
					subs = append(subs, collectPhase.On(id, slowly(time.Second, id), o))
				}
				install(t, rt, subs...)
				began := time.Now()
				out := dispatch(t, collectPhase, snapshot(t, rt), write)
				equal(t, "time", time.Since(began), test.want)
				same(t, "notes", out.Output.Notes, []string{"a", "b", "c"})
			})
		})
	}
}

// SPEC H-07
func TestOverlapIsCapped(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		var running, most atomic.Int32
		handler := does[findings](func(context.Context, call) {
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(time.Second)
			running.Add(-1)
		})
		rt := newRuntime(t, nil)
		for i := range 5 {
			install(t, rt, narrowPhase.On(fmt.Sprint("n", i), handler, &hook.Options{Concurrent: true}))
		}
		for i := range 20 {
			install(t, rt, collectPhase.On(fmt.Sprint("n", i), handler, &hook.Options{Execution: hook.Deadline, Timeout: time.Minute}))
		}
		s := snapshot(t, rt)
		began := time.Now()
		dispatch(t, narrowPhase, s, write)
		equal(t, "most at the same time, of 2", most.Load(), 2)
		equal(t, "time for 5", time.Since(began), 3*time.Second)
		most.Store(0)
		began = time.Now()
		dispatch(t, collectPhase, s, write)
		equal(t, "most at the same time, by default", most.Load(), 16)
		equal(t, "time for 20", time.Since(began), 2*time.Second)
	})
}

// Answers are merged in plan order, not in order of completion.
//
// SPEC H-05, H-07
func TestMergeFollowsThePlan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(rt, "subscriptions")
		subs := make([]hook.Subscription, n)
		titles := map[string]string{}
		for i := range subs {
			id := fmt.Sprint("n", i)
			o := hook.Options{Priority: rapid.IntRange(0, 2).Draw(rt, "priority")}
			switch rapid.IntRange(0, 2).Draw(rt, "execution") {
			case 0:
				o.Concurrent = true
			case 1:
				o.Execution, o.Timeout = hook.Deadline, time.Hour
			}
			if i > 0 && rapid.IntRange(0, 2).Draw(rt, "ordered") == 0 {
				o.After = []string{fmt.Sprint("n", rapid.IntRange(0, i-1).Draw(rt, "after"))}
			}
			takes := time.Duration(rapid.IntRange(0, 9).Draw(rt, "seconds")) * time.Second
			titles[id] = rapid.SampledFrom([]string{"", "one", "two"}).Draw(rt, "title")
			subs[i] = collectPhase.On(id, func(context.Context, call) (findings, error) {
				time.Sleep(takes)
				return findings{Title: titles[id], Notes: []string{id}}, nil
			}, &o)
		}
		var order, recorded []string
		var out hook.Outcome[call, findings]
		bubble(t, func(t *testing.T) {
			runtime := newRuntime(t, nil, subs...)
			s := snapshot(t, runtime)
			out = dispatch(t, collectPhase, s, write)
			order = planOf(t, runtime, collectPhase)
			for _, r := range s.Take() {
				recorded = append(recorded, r.Subscription)
			}
		})
		if !slices.Equal(out.Output.Notes, order) {
			rt.Fatalf("merged in the order %v, the plan is %v", out.Output.Notes, order)
		}
		title, clashes := "", 0 // If titles differ, the first in plan order is used.
		for _, id := range order {
			switch {
			case title == "":
				title = titles[id]
			case titles[id] != "" && titles[id] != title:
				clashes++
			}
		}
		if out.Output.Title != title || len(out.Diagnostics) != clashes {
			rt.Fatalf("title %q with %d diagnostics, want %q with %d", out.Output.Title, len(out.Diagnostics), title, clashes)
		}
		slices.Sort(order)
		slices.Sort(recorded)
		if !slices.Equal(recorded, order) {
			rt.Fatalf("runs of %v, want one each of %v", recorded, order)
		}
	})
}

// SPEC H-16, H-17
func TestMergeDiagnosticsNameTheirSubscription(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil,
		collectPhase.On("a", says(findings{Title: "one"}), nil), collectPhase.On("b", says(findings{Title: "two"}), nil))
	out := dispatch(t, collectPhase, snapshot(t, rt), write)
	want := hook.Diagnostic{
		Code: codes.PolicyConflict, Level: codes.LevelWarn, Phase: "test.collect", Subscription: "b",
		Message: "two titles; the earlier stands",
	}
	if len(out.Diagnostics) != 1 || out.Diagnostics[0] != want {
		t.Errorf("got %v, want %v", out.Diagnostics, want)
	}
}

// After only orders handlers. It passes no data: every handler of a phase gets the input of
// the phase, and never the contributions of another handler.
//
// SPEC H-20
func TestHandlersDoNotSeeEachOthersContributions(t *testing.T) {
	t.Parallel()
	var seen trail
	look := func(id string) hook.Handler[call, verdict] {
		return func(ctx context.Context, in call) (verdict, error) {
			seen.add(fmt.Sprintf("%s saw %q, %v", id, in.text, ctx.Value(trailKey{})))
			return verdict{Context: []string{id + "'s secret"}}, nil
		}
	}
	rt := newRuntime(t, nil,
		gatePhase.On("a", look("a"), nil),
		gatePhase.On("b", look("b"), &hook.Options{After: []string{"a"}}),
		gatePhase.On("c", look("c"), &hook.Options{After: []string{"b"}, Concurrent: true}),
		gatePhase.On("d", look("d"), &hook.Options{After: []string{"c"}, Execution: hook.Deadline, Timeout: time.Minute}),
	)
	ctx := context.WithValue(context.Background(), trailKey{}, "the caller's")
	out, err := gatePhase.Dispatch(ctx, snapshot(t, rt), write)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "what they saw", seen.all(), []string{
		`a saw "hello", the caller's`, `b saw "hello", the caller's`, `c saw "hello", the caller's`, `d saw "hello", the caller's`,
	})
	equal(t, "what was merged", strings.Join(out.Output.Context, ", "), "a's secret, b's secret, c's secret, d's secret")
	equal(t, "the caller's input", write.text, "hello")
}

type trailKey struct{}
