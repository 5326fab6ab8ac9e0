package hook_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/belay-run/belay/hook"
)

// notes dispatches to the collect phase and joins the notes of the merged answer.
func notes(t testing.TB, s *hook.Snapshot) string {
	t.Helper()
	return strings.Join(dispatch(t, collectPhase, s, write).Output.Notes, " ")
}

func noteNamed(id string) hook.Subscription { return collectPhase.On(id, says(note(id)), nil) }

// SPEC H-14
func TestTurnWorksOnTheSnapshotItStartedWith(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil, noteNamed("a"))
	lease := install(t, rt, noteNamed("b"))
	turn := snapshot(t, rt)
	if err := lease.Close(); err != nil {
		t.Fatal(err)
	}
	install(t, rt, noteNamed("c"))
	equal(t, "the turn under way", notes(t, turn), "a b")
	equal(t, "the next turn", notes(t, snapshot(t, rt)), "a c")
	same(t, "plan of the turn under way", idsOf(collectPhase.Plan(turn)), []string{"a", "b"})
	same(t, "plan of the runtime", planOf(t, rt, collectPhase), []string{"a", "c"})
	equal(t, "the turn under way, still", notes(t, turn), "a b")
}

func idsOf(plan hook.Plan) []string {
	ids := []string{}
	for _, e := range plan.Entries {
		ids = append(ids, e.ID)
	}
	return ids
}

// SPEC H-14
func TestRefreshTakesInGatesAndNothingElse(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil, gateNamed("keep", nil), noteNamed("a"))
	closing := install(t, rt, gateNamed("closed", nil), noteNamed("b"))
	turn := snapshot(t, rt)
	turn.Refresh() // Nothing is new.
	same(t, "gates", idsOf(gatePhase.Plan(turn)), []string{"closed", "keep"})

	if err := closing.Close(); err != nil {
		t.Fatal(err)
	}
	install(t, rt, gateNamed("new", &hook.Options{Before: []string{"keep"}}), noteNamed("c"),
		rewritePhase.On("first", says(edit{Text: "rewritten"}), rewriter(hook.Options{})))
	equal(t, "a gate of an unused phase, before", rewritePhase.Active(turn), false)
	turn.Refresh()
	same(t, "gates: new ones join, closed ones stay until the turn ends", idsOf(gatePhase.Plan(turn)), []string{"closed", "new", "keep"})
	equal(t, "a gate of an unused phase, after", dispatch(t, rewritePhase, turn, write).Input.text, "rewritten")
	equal(t, "everything else stays", notes(t, turn), "a b")
	same(t, "gates of the next turn", planOf(t, rt, gatePhase), []string{"new", "keep"})

	install(t, rt, gateNamed("newer", nil))
	turn.Refresh()
	same(t, "gates after another step", idsOf(gatePhase.Plan(turn)), []string{"closed", "new", "keep", "newer"})
}

// A gate that is added during a turn denies from the next step on.
//
// SPEC H-14
func TestGateAddedDuringATurnJoinsAtTheNextStep(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil)
	turn := snapshot(t, rt)
	install(t, rt, gatePhase.On("guard", says(deny("no")), nil))
	equal(t, "in the same step", dispatch(t, gatePhase, turn, write).Output.Severity, hook.SeverityPass)
	turn.Refresh()
	equal(t, "in the next step", dispatch(t, gatePhase, turn, write).Output.Severity, hook.SeverityDeny)
}

// If a gate was replaced, the turn uses the new gate. Otherwise it would call two handlers
// with one id.
//
// SPEC H-14
func TestRefreshTakesTheNewerOfTwo(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil)
	lease := install(t, rt, gatePhase.On("a", says(ask("old")), nil), gateNamed("b", &hook.Options{After: []string{"a"}}))
	turn := snapshot(t, rt)
	if _, err := lease.Replace(gatePhase.On("a", says(ask("new")), nil)); err != nil {
		t.Fatal(err)
	}
	equal(t, "in the same step", dispatch(t, gatePhase, turn, write).Output.Reason, "old")
	turn.Refresh()
	equal(t, "in the next step", dispatch(t, gatePhase, turn, write).Output.Reason, "new")
	same(t, "gates", idsOf(gatePhase.Plan(turn)), []string{"a", "b"})
}

// If old and new gates cannot be ordered together, no gate is lost. The installed gates
// keep their order, and gates whose lease was closed meanwhile stay in the turn.
//
// SPEC H-14
func TestRefreshKeepsGatesThatCannotBeOrderedTogether(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil)
	old := install(t, rt, gateNamed("first", nil), gateNamed("middle", &hook.Options{After: []string{"first"}, Before: []string{"last"}}), gateNamed("last", nil))
	turn := snapshot(t, rt)
	if _, err := old.Replace(gateNamed("first", &hook.Options{After: []string{"last"}}), gateNamed("last", nil)); err != nil {
		t.Fatal(err)
	}
	turn.Refresh()
	gates := idsOf(gatePhase.Plan(turn))
	equal(t, "first comes after last now", slices.Index(gates, "last") < slices.Index(gates, "first"), true)
	slices.Sort(gates)
	same(t, "gates", gates, []string{"first", "last", "middle"})
	dispatch(t, gatePhase, turn, write)
	equal(t, "runs", len(turn.Take()), 3)
}

// After a refresh, a turn has the gates that it started with and all gates that exist now,
// whatever others install and close.
//
// SPEC H-14
func TestRefreshAgainstReference(t *testing.T) {
	t.Parallel()
	ids := []string{"a", "b", "c", "d", "e"}
	rapid.Check(t, func(rt *rapid.T) {
		runtime := newRuntime(t, nil)
		leases := map[string]*hook.Lease{}
		turn := runtime.Snapshot()
		defer func() { _ = turn.Release(context.Background()) }()
		mine := map[string]bool{}
		for _, step := range rapid.SliceOfN(rapid.SampledFrom(append(ids, "refresh")), 1, 25).Draw(rt, "steps") {
			switch {
			case step == "refresh":
				turn.Refresh()
				for id := range leases {
					mine[id] = true
				}
			case leases[step] != nil:
				if err := leases[step].Close(); err != nil {
					rt.Fatal(err)
				}
				delete(leases, step)
			default:
				leases[step] = install(t, runtime, gateNamed(step, nil))
			}
		}
		var want []string
		for _, id := range ids {
			if mine[id] {
				want = append(want, id)
			}
		}
		if got := idsOf(gatePhase.Plan(turn)); !slices.Equal(got, want) {
			rt.Fatalf("gates: got %v, want %v", got, want)
		}
	})
}

// It is safe to install and close subscriptions while turns run. Each turn sees all
// subscriptions of a lease or none, and always the same. At the end no subscription is
// left.
//
// SPEC H-14
func TestInstallDuringDispatch(t *testing.T) {
	t.Parallel()
	watchdog(t)
	rt := newRuntime(t, nil, noteNamed("always"))
	const workers, rounds = 50, 10
	var ran atomic.Int64
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			for range rounds {
				id := fmt.Sprint("n", i)
				o := &hook.Options{Concurrent: i%3 == 1, Priority: i % 5}
				lease, err := rt.Install(
					collectPhase.On(id+".a", says(note(id)), o), collectPhase.On(id+".b", says(note(id)), &hook.Options{After: []string{id + ".a"}}),
					gatePhase.On(id, says(verdict{}), nil))
				if err != nil {
					t.Error(err)
					return
				}
				if err := lease.Drain(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			for range rounds {
				s := rt.Snapshot()
				first := notes(t, s)
				if second := notes(t, s); first != second {
					t.Errorf("one turn saw %q and then %q", first, second)
				}
				counts := map[string]int{}
				for id := range strings.FieldsSeq(first) {
					counts[id]++
				}
				for id, n := range counts {
					if want := 2; id != "always" && n != want {
						t.Errorf("a turn saw %d of the %d subscriptions of %s", n, want, id)
					}
				}
				ran.Add(int64(len(s.Take())))
				s.Refresh()
				_, err := gatePhase.Dispatch(context.Background(), s, write)
				if err := errors.Join(err, s.Release(context.Background())); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	same(t, "what is left", planOf(t, rt, collectPhase), []string{"always"})
	same(t, "gates that are left", planOf(t, rt, gatePhase), []string{})
	if ran.Load() < 2*workers*rounds {
		t.Errorf("%d runs, want at least %d", ran.Load(), 2*workers*rounds)
	}
}

// Many goroutines can dispatch on one snapshot.
//
// SPEC H-12, H-14
func TestOneSnapshotManyDispatches(t *testing.T) {
	t.Parallel()
	watchdog(t)
	journal := &fragileJournal{}
	rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal}, noteNamed("a"), noteNamed("b"),
		collectPhase.On("c", says(note("c")), &hook.Options{Concurrent: true}))
	s := rt.Snapshot()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for i := range 30 {
				if got := notes(t, s); got != "a b c" {
					t.Errorf("got %q", got)
				}
				if i%10 == 0 {
					if err := s.Flush(context.Background()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	if err := s.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, r := range journal.all() {
		ids[r.ID] = true
	}
	equal(t, "runs", len(journal.all()), 1800)
	equal(t, "distinct runs", len(ids), 1800)
}
