package hook_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newRuntime makes a runtime with all test phases and installs the subscriptions.
func newRuntime(t testing.TB, opts *hook.RuntimeOptions, subs ...hook.Subscription) *hook.Runtime {
	t.Helper()
	rt, err := hook.NewRuntime(allPhases, opts)
	if err != nil {
		t.Fatal(err)
	}
	install(t, rt, subs...)
	return rt
}

func install(t testing.TB, rt *hook.Runtime, subs ...hook.Subscription) *hook.Lease {
	t.Helper()
	lease, err := rt.Install(subs...)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// snapshot takes a snapshot and releases it when the test ends.
func snapshot(t testing.TB, rt *hook.Runtime) *hook.Snapshot {
	t.Helper()
	s := rt.Snapshot()
	t.Cleanup(func() {
		if err := s.Release(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// dispatch dispatches the call to the phase and fails the test on an error.
func dispatch[Out hook.Output](t testing.TB, p hook.Phase[call, Out], s *hook.Snapshot, in call) hook.Outcome[call, Out] {
	t.Helper()
	out, err := p.Dispatch(context.Background(), s, in)
	if err != nil {
		t.Fatalf("dispatch: %v", err)
	}
	return out
}

// installProblems returns the problems in an *InstallError. It fails the test if err is
// another error.
func installProblems(t rapid.TB, err error) []error {
	t.Helper()
	found, ok := errors.AsType[*hook.InstallError](err)
	if !ok || len(found.Problems) == 0 {
		t.Fatalf("install: got error %v (%T), want an *InstallError with problems", err, err)
	}
	return found.Problems
}

// brief formats runs as "id:state", in the given order. If a run has a code, it follows the
// state.
func brief(runs []hook.Run) string {
	parts := make([]string, len(runs))
	for i, r := range runs {
		parts[i] = r.Subscription + ":" + r.State.String()
		if r.Class != "" {
			parts[i] += "(" + string(r.Class) + ")"
		}
	}
	return strings.Join(parts, " ")
}

// runOf returns the run of a subscription. It fails unless there is exactly one.
func runOf(t testing.TB, runs []hook.Run, id string) hook.Run {
	t.Helper()
	var found []hook.Run
	for _, r := range runs {
		if r.Subscription == id {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		t.Fatalf("runs of %s: got %d, want one: %s", id, len(found), brief(runs))
	}
	return found[0]
}

// list reads the runs of a journal that match the filter.
func list(t testing.TB, j hook.ListJournal, filter hook.Filter) []hook.Run {
	t.Helper()
	var runs []hook.Run
	for r, err := range j.List(context.Background(), filter) {
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r)
	}
	return runs
}

// codesOf lists the codes of diagnostics.
func codesOf(diags []hook.Diagnostic) []codes.Code {
	var codes []codes.Code
	for _, d := range diags {
		codes = append(codes, d.Code)
	}
	return codes
}

// planOf returns the ids of a phase's subscriptions in plan order.
func planOf(t testing.TB, rt *hook.Runtime, phase hook.AnyPhase) []string {
	t.Helper()
	plan, err := rt.Plan(phase.Name())
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{}
	for _, e := range plan.Entries {
		ids = append(ids, e.ID)
	}
	return ids
}

// equal fails the test unless got equals want.
func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// same fails the test unless the lists are equal.
func same[T comparable](t testing.TB, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// watchdog ends the process and prints all stacks if the test takes too long, so that a
// deadlock does not hang. Call it outside of a synctest bubble: a bubble's clock does not
// advance while a goroutine waits for a lock.
func watchdog(t testing.TB) {
	t.Helper()
	timer := time.AfterFunc(30*time.Second, func() {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		panic(fmt.Sprintf("%s: deadlock\n%s", t.Name(), stacks))
	})
	t.Cleanup(func() { timer.Stop() })
}

// bubble runs a test in a synctest bubble, whose fake clock advances when all goroutines
// wait. At the end it sleeps for a day, so that abandoned runs can return before the clock
// stops.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(24 * time.Hour)
		test(t)
	})
}

// trail collects steps in the order in which they happened.
type trail struct {
	mu    sync.Mutex
	steps []string
}

func (tr *trail) add(step string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.steps = append(tr.steps, step)
}

func (tr *trail) all() []string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return slices.Clone(tr.steps)
}

// gate returns a handler that adds a step whenever it runs.
func (tr *trail) gate(step string) hook.Handler[call, verdict] {
	return does[verdict](func(context.Context, call) { tr.add(step) })
}
