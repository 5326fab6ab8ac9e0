package hook_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/belay-run/belay/hook"
)

// inherit returns a snapshot of the child's runtime that inherits the parent's
// subscriptions.
func inherit(t testing.TB, child, parent *hook.Runtime) *hook.Snapshot {
	t.Helper()
	s := snapshot(t, child)
	p := parent.Snapshot()
	if err := s.Inherit(p); err != nil {
		t.Fatal(err)
	}
	if err := p.Release(context.Background()); err != nil { // the child's snapshot still holds the parent's
		t.Fatal(err)
	}
	return s
}

// SPEC H-02: the parent's subscriptions apply in the child, unless they opt
// out.
func TestInheritTakesAPlaceInTheOrder(t *testing.T) {
	t.Parallel()
	shared := gateNamed("m", nil)
	parent := newRuntime(t, nil, shared, gateNamed("b", &hook.Options{After: []string{"z"}}), gateNamed("z", nil), gateNamed("off", &hook.Options{Disabled: true}),
		gateNamed("alone", &hook.Options{NoInherit: true}), noteNamed("n"))
	child := newRuntime(t, nil, shared, gateNamed("a", nil), gateNamed("b", nil))
	turn := inherit(t, child, parent)
	same(t, "gates", idsOf(gatePhase.Plan(turn)), []string{"a", "b", "m", "z", "inherited:b"})
	equal(t, "a phase that the child has nothing at", notes(t, turn), "n")
	same(t, "the child's runtime", planOf(t, child, gatePhase), []string{"a", "b", "m"})

	below := inherit(t, newRuntime(t, nil, gateNamed("z", nil)), child)
	same(t, "without the parent's snapshot nothing of it is handed on", idsOf(gatePhase.Plan(below)), []string{"a", "b", "m", "z"})

	grandchild := snapshot(t, newRuntime(t, nil, gateNamed("z", nil)))
	if err := grandchild.Inherit(turn); err != nil {
		t.Fatal(err)
	}
	same(t, "a grandchild", idsOf(gatePhase.Plan(grandchild)), []string{"a", "b", "inherited:z", "m", "z", "inherited:b"})
}

// SPEC H-02, H-14: a child's subscription cannot replace an inherited gate of the same
// name, whether it was installed before or after the child inherited the gate.
func TestInheritedGatesStand(t *testing.T) {
	t.Parallel()
	parent := newRuntime(t, nil, gatePhase.On("guard", says(deny("no")), nil))
	child := newRuntime(t, nil, gatePhase.On("guard", says(verdict{}), nil))
	turn := inherit(t, child, parent)
	out := dispatch(t, gatePhase, turn, write)
	equal(t, "who denies", out.By, "inherited:guard")

	late := newRuntime(t, nil)
	turn = inherit(t, late, parent)
	install(t, late, gatePhase.On("guard", says(verdict{}), nil))
	turn.Refresh()
	out = dispatch(t, gatePhase, turn, write)
	equal(t, "what is decided after another took the name", out.Output.Severity, hook.SeverityDeny)
	same(t, "gates", idsOf(gatePhase.Plan(turn)), []string{"guard", "inherited:guard"})
}

// SPEC H-02: if inherited gates cannot be ordered together with the child's own gates, they
// are ordered by priority and id, and none is lost.
func TestInheritedGatesThatCannotBeOrdered(t *testing.T) {
	t.Parallel()
	parent := newRuntime(t, nil, gateNamed("x", &hook.Options{Before: []string{"y"}}), gateNamed("y", nil))
	child := newRuntime(t, nil, gateNamed("y", &hook.Options{Priority: 3, Before: []string{"w"}}), gateNamed("w", nil),
		gateNamed("kept", &hook.Options{After: []string{"w"}}))
	same(t, "gates", idsOf(gatePhase.Plan(inherit(t, child, parent))), []string{"inherited:y", "x", "y", "w", "kept"})
}

// SPEC H-04, H-14: the lease of an inherited subscription is not drained while a child's
// turn uses it.
func TestInheritedSubscriptionsAreHeld(t *testing.T) {
	t.Parallel()
	parent := newRuntime(t, nil)
	lease := install(t, parent, gateNamed("guard", nil))
	turn := newRuntime(t, nil).Snapshot()
	p := parent.Snapshot()
	if err := errors.Join(turn.Inherit(p), p.Release(t.Context()), lease.Close()); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := lease.Drain(ended); err == nil {
		t.Error("the lease is drained while a child's turn holds it")
	}
	if err := errors.Join(turn.Release(t.Context()), lease.Drain(t.Context())); err != nil {
		t.Error(err)
	}
	if err := newRuntime(t, nil).Snapshot().Inherit(p); !errors.Is(err, hook.ErrReleased) {
		t.Errorf("inheriting from a snapshot that was released: %v", err)
	}
}

// SPEC H-02, J-01, J-09: the run of an inherited hook is recorded with the child's turn.
// Its jobs go to the queue of the parent, where the hook was installed.
func TestInheritedRunsAndJobs(t *testing.T) {
	t.Parallel()
	queue := hook.NewMemoryQueue(hook.NewMemoryJournal(8), nil)
	parent := newRuntime(t, &hook.RuntimeOptions{Queue: queue})
	if _, err := parent.InstallJobs(hook.JobHandler{Name: "index", Run: func(context.Context, hook.Job) ([]hook.Audit, error) { return nil, nil }}); err != nil {
		t.Fatal(err)
	}
	install(t, parent, gatePhase.On("scheduler", says(verdict{Jobs: []hook.Job{{Handler: "index", Key: "k"}}}), &hook.Options{Capabilities: hook.CanSchedule}))
	child := newRuntime(t, nil)
	turn := inherit(t, child, parent)
	dispatch(t, gatePhase, turn, write)
	if got := brief(turn.Take()); !strings.Contains(got, "scheduler:completed") {
		t.Errorf("on record is %q", got)
	}
	stats, err := queue.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "jobs in the parent's queue", stats.Waiting, 1)
}
