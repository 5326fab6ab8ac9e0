package hook_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belay-run/belay/hook"
)

// stagesOf formats a plan as its stages. "[a b]" means that a and b overlap, "a b" that
// they run inline.
func stagesOf(t rapid.TB, plan hook.Plan) string {
	t.Helper()
	var stages []string
	for stage := 1; ; stage++ {
		var ids []string
		runs := ""
		for _, e := range plan.Entries {
			if e.Stage == stage {
				ids = append(ids, e.ID)
				runs = e.Runs
			}
		}
		if ids == nil {
			return strings.Join(stages, " | ")
		}
		text := strings.Join(ids, " ")
		if runs == "overlapping" {
			text = "[" + text + "]"
		}
		stages = append(stages, text)
	}
}

// SPEC H-07
func TestStages(t *testing.T) {
	t.Parallel()
	inline := hook.Options{}
	concurrent := hook.Options{Concurrent: true}
	deadline := hook.Options{Execution: hook.Deadline, Timeout: time.Second}
	on := func(id string, o hook.Options, after ...string) hook.Subscription {
		o.After = after
		return narrowPhase.On(id, says(findings{}), &o) // narrowPhase runs two at a time.
	}
	edits := func(id string, o hook.Options) hook.Subscription { return rewritePhase.On(id, says(edit{}), &o) }
	for _, test := range []struct {
		rule string
		subs []hook.Subscription
		want string
	}{
		{"inline handlers are one stage", []hook.Subscription{on("a", inline), on("b", inline), on("c", inline)}, "a b c"},
		{"concurrent handlers overlap", []hook.Subscription{on("a", concurrent), on("b", concurrent)}, "[a b]"},
		{"deadline handlers overlap with concurrent handlers", []hook.Subscription{on("a", concurrent), on("b", deadline)}, "[a b]"},
		{"handlers overlap up to the limit", []hook.Subscription{on("a", concurrent), on("b", concurrent), on("c", concurrent), on("d", deadline), on("e", deadline)}, "[a b] | [c d] | [e]"},
		{"a dependency puts handlers into different stages", []hook.Subscription{on("a", concurrent), on("b", concurrent, "a")}, "[a] | [b]"},
		{"a concurrent handler joins its level across an inline handler", []hook.Subscription{on("a", concurrent), on("b", inline), on("c", concurrent)}, "[a c] | b"},
		{"a concurrent handler of another level does not join", []hook.Subscription{on("a", concurrent), on("b", inline), on("c", concurrent, "b")}, "[a] | b | [c]"},
		{"inline handlers around a stage keep plan order", []hook.Subscription{on("a", inline), on("b", concurrent), on("c", inline)}, "a | [b] | c"},
		{"concurrent handlers overlap after an inline handler of the same level", []hook.Subscription{
			on("a", inline), on("b", inline, "a"), on("c", concurrent, "a"), on("d", concurrent, "a"),
		}, "a b | [c d]"},
		{"rewriters run one at a time", []hook.Subscription{
			edits("a", *rewriter(inline)), edits("b", *rewriter(deadline)), edits("c", *rewriter(deadline)), edits("d", concurrent), edits("e", deadline),
		}, "a | [b] | [c] | [d e]"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			rt := newRuntime(t, nil, test.subs...)
			plan, err := rt.Plan(test.subs[0].Phase().Name())
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "stages", stagesOf(t, plan), test.want)
		})
	}
}

// In every graph, inline handlers keep plan order, no handler starts before its
// predecessors, and handlers of one level overlap up to the limit.
//
// SPEC H-07
func TestStagesOfAnyGraph(t *testing.T) {
	t.Parallel()
	const limit = 2 // the limit of narrowPhase
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(rt, "subscriptions")
		subs := make([]hook.Subscription, n)
		overlaps := map[string]bool{}
		for i := range subs {
			o := hook.Options{Priority: rapid.IntRange(0, 3).Draw(rt, "priority")}
			switch rapid.IntRange(0, 3).Draw(rt, "execution") {
			case 0:
				o.Concurrent = true
			case 1:
				o.Execution, o.Timeout = hook.Deadline, time.Second
			case 2:
				o.Execution = hook.FireAndRecord
			}
			for j := range i {
				if rapid.IntRange(0, 4).Draw(rt, "edge") == 0 {
					o.After = append(o.After, fmt.Sprint("n", j))
				}
			}
			subs[i] = narrowPhase.On(fmt.Sprint("n", i), says(findings{}), &o)
			overlaps[subs[i].ID()] = o.Concurrent || o.Execution == hook.Deadline
		}
		runtime, err := hook.NewRuntime(allPhases, nil)
		if err != nil {
			rt.Fatal(err)
		}
		if _, err := runtime.Install(subs...); err != nil {
			rt.Fatal(err)
		}
		plan, err := runtime.Plan(narrowPhase.Name())
		if err != nil {
			rt.Fatal(err)
		}
		stage, position, size := map[string]int{}, map[string]int{}, map[int]int{}
		for _, e := range plan.Entries {
			stage[e.ID], position[e.ID] = e.Stage, e.Position
			size[e.Stage]++
		}
		for i, e := range plan.Entries {
			if (e.Runs == "overlapping") != overlaps[e.ID] {
				rt.Fatalf("%s runs %s", e.ID, e.Runs)
			}
			for _, before := range e.After {
				if stage[before] > e.Stage || stage[before] == e.Stage && (overlaps[e.ID] || position[before] > e.Position) {
					rt.Fatalf("%s starts before its predecessor %s has ended: %s", e.ID, before, stagesOf(rt, plan))
				}
			}
			for _, other := range plan.Entries[i+1:] {
				switch {
				case !overlaps[e.ID] && !overlaps[other.ID]:
					if other.Stage < e.Stage {
						rt.Fatalf("%s and %s are inline and not in plan order: %s", e.ID, other.ID, stagesOf(rt, plan))
					}
				case overlaps[e.ID] != overlaps[other.ID]:
					if other.Stage == e.Stage {
						rt.Fatalf("%s and %s run differently in one stage: %s", e.ID, other.ID, stagesOf(rt, plan))
					}
				case other.Stage == e.Stage && other.Level != e.Level:
					rt.Fatalf("%s and %s overlap across levels: %s", e.ID, other.ID, stagesOf(rt, plan))
				case other.Stage > e.Stage && other.Level == e.Level && size[e.Stage] < limit:
					// The stage had room for the other handler. So a predecessor of that
					// handler must be in this stage or a later one.
					if !slices.ContainsFunc(other.After, func(before string) bool { return stage[before] >= e.Stage }) {
						rt.Fatalf("%s was ready and does not overlap with %s: %s", other.ID, e.ID, stagesOf(rt, plan))
					}
				}
			}
		}
		for st, n := range size {
			if first := slices.IndexFunc(plan.Entries, func(e hook.PlanEntry) bool { return e.Stage == st }); overlaps[plan.Entries[first].ID] && n > limit {
				rt.Fatalf("%d overlap in stage %d: %s", n, st, stagesOf(rt, plan))
			}
		}
	})
}
