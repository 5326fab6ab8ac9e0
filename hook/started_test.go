package hook_test

import (
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
)

// SPEC J-03, J-04: if the started record of a gate cannot be written, no later gate runs,
// whatever the failure mode is. This includes Go handlers, which need no started record.
func TestNoGateRunsBehindOneWhoseStartCannotBeRecorded(t *testing.T) {
	t.Parallel()
	for _, failure := range []hook.Failure{hook.Closed, hook.Open} {
		journal := newCountingJournal()
		var ran trail
		rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal},
			gatePhase.On("a", ran.gate("a"), nil),
			gatePhase.On("b", ran.gate("b"), &hook.Options{Kind: hook.HandlerCommand, Failure: failure}),
			gatePhase.On("c", ran.gate("c"), nil))
		s := rt.Snapshot()
		journal.setFault(errDisk)
		if _, err := gatePhase.Dispatch(t.Context(), s, write); !isJournalError(err) {
			t.Errorf("%s: got %v, want a *JournalError", failure, err)
		}
		journal.setFault(nil)
		same(t, "gates that ran", ran.all(), []string{"a"})
		equal(t, "runs", brief(s.Take()), "a:completed b:failed(journal.unavailable) c:skipped(hook.skipped)")
		if err := s.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// SPEC J-01: if a run with a started record is skipped, its key and attempt number are not
// copied into the records of other skipped runs.
func TestSkippedRunsShareNoKey(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, &hook.RuntimeOptions{Journal: newCountingJournal()},
		gatePhase.On("a", says(deny("no")), outside), gateNamed("b", outside), gateNamed("c", nil))
	s := snapshot(t, rt)
	for range 2 {
		dispatch(t, gatePhase, s, write)
		runs := s.Take()
		equal(t, "runs", brief(runs), "a:completed b:skipped(hook.skipped) c:skipped(hook.skipped)")
		if runs[1].Key == "" || runs[2].Key != "" || runs[2].Attempt != 0 {
			t.Errorf("the keys are %q and %q, the attempts %d and %d; want none for c", runs[1].Key, runs[2].Key, runs[1].Attempt, runs[2].Attempt)
		}
	}
}

// A snapshot can be used for several resumed turns, one after the other. Each turn counts
// its own earlier runs.
//
// SPEC J-01
func TestAttemptsOfOneResumedTurnAfterAnother(t *testing.T) {
	t.Parallel()
	journal := newCountingJournal()
	for turn, attempt := range map[string]int{"t1": 3, "t2": 5} {
		left := hook.Run{
			ID: turn, Subscription: "a", Phase: gatePhase.Name(), Scope: hook.Scope{Session: "s1", Turn: turn}, State: hook.Interrupted, Attempt: attempt, Key: "hook:other",
			Started: time.Now(),
		}
		if err := journal.Append(t.Context(), []hook.Run{left}); err != nil {
			t.Fatal(err)
		}
	}
	s := snapshot(t, newRuntime(t, &hook.RuntimeOptions{Journal: journal}, gateNamed("a", outside)))
	var got []int
	for _, turn := range []string{"t1", "t2"} {
		s.Resumes(turn)
		in := write
		in.scope = &hook.Scope{Session: "s1", Turn: turn}
		dispatch(t, gatePhase, s, in)
		got = append(got, s.Take()[0].Attempt)
	}
	same(t, "attempts", got, []int{4, 6})
}

// Outside of a turn nothing is resumed. So each run is a first attempt and has no key.
//
// SPEC J-01
func TestRunsOutsideOfATurnHaveNoKey(t *testing.T) {
	t.Parallel()
	s := snapshot(t, newRuntime(t, &hook.RuntimeOptions{Journal: newCountingJournal()}, gateNamed("a", outside)))
	in := write
	in.scope = &hook.Scope{Session: "s1"}
	for range 2 {
		dispatch(t, gatePhase, s, in)
		run := runOf(t, s.Take(), "a")
		equal(t, "key", run.Key, "")
		equal(t, "attempt", run.Attempt, 1)
	}
}
