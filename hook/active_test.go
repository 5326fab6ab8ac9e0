package hook_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/belay-run/belay/hook"
)

// SPEC H-13
func TestActive(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil)
	equal(t, "with a nil snapshot", gatePhase.Active(nil), false)
	equal(t, "with nothing subscribed", gatePhase.Active(snapshot(t, rt)), false)
	disabled := install(t, rt, gateNamed("off", &hook.Options{Disabled: true}))
	equal(t, "with what is disabled", gatePhase.Active(snapshot(t, rt)), false)
	lease := install(t, rt, gateNamed("a", nil))
	held := snapshot(t, rt)
	equal(t, "with a subscription", gatePhase.Active(held), true)
	equal(t, "of another phase", collectPhase.Active(held), false)
	if err := lease.Close(); err != nil {
		t.Fatal(err)
	}
	equal(t, "after it was closed", gatePhase.Active(snapshot(t, rt)), false)
	equal(t, "in a turn that began before", gatePhase.Active(held), true)
	if err := disabled.Close(); err != nil {
		t.Fatal(err)
	}
	install(t, rt, gateNamed("shadow", &hook.Options{Shadow: true}))
	equal(t, "with a shadow", gatePhase.Active(snapshot(t, rt)), true)
}

// A phase without subscriptions returns its input and no opinion.
//
// SPEC H-13
func TestDispatchOfAnInactivePhase(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // No handler is called, so the cancellation has no effect.
	for _, s := range []*hook.Snapshot{nil, snapshot(t, rt)} {
		out, err := gatePhase.Dispatch(ctx, s, write)
		if err != nil || out.Input != write || out.Output.Severity != hook.SeverityPass || out.By != "" || out.Diagnostics != nil {
			t.Errorf("got %+v, %v; want the input and no opinion", out, err)
		}
	}
}

// An inactive phase allocates nothing. This test is not parallel, because it would count
// the allocations of other tests.
//
// SPEC H-13
func TestAllocations(t *testing.T) { //nolint:paralleltest // see above
	rt := newRuntime(t, nil)
	empty := snapshot(t, rt)
	equal(t, "allocations of Active on an unused phase", testing.AllocsPerRun(1000, func() { gatePhase.Active(empty) }), 0)
	equal(t, "allocations of a dispatch of an unused phase", testing.AllocsPerRun(1000, func() {
		_, _ = gatePhase.Dispatch(context.Background(), empty, write)
	}), 0)
	for i := range 10 {
		install(t, rt, gatePhase.On(fmt.Sprint("n", i), says(verdict{}), nil))
	}
	s := snapshot(t, rt)
	equal(t, "allocations of Active", testing.AllocsPerRun(1000, func() { gatePhase.Active(s) }), 0)
	equal(t, "allocations of 10 inline handlers that get a large struct", testing.AllocsPerRun(1000, func() {
		_, _ = gatePhase.Dispatch(context.Background(), s, write)
	}), 1)
}

// A phase whose input is a pointer allocates nothing for handlers without an opinion.
//
// SPEC H-13
func TestAllocationsOfPointers(t *testing.T) { //nolint:paralleltest // see TestAllocations
	phase := hook.Define(hook.Definition[*call, verdict]{
		Name: "probe", Kind: hook.Collect, Capabilities: hook.CanAudit,
		Merge: func(_ *hook.Merging, merged, _ verdict) verdict { return merged },
	})
	rt, err := hook.NewRuntime([]hook.AnyPhase{phase}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		install(t, rt, phase.On(fmt.Sprint("n", i), func(context.Context, *call) (verdict, error) { return verdict{}, nil }, nil))
	}
	s, in := snapshot(t, rt), &call{scope: write.scope}
	equal(t, "allocations of 10 inline handlers with no opinion", testing.AllocsPerRun(1000, func() {
		_, _ = phase.Dispatch(context.Background(), s, in)
	}), 0)
}
