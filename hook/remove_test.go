package hook_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/belay-run/belay/hook"
)

// A subscription can be removed by its id, without its lease. Turns that run keep it, and
// its lease can still be closed.
//
// SPEC H-14
func TestRemoveByID(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil)
	lease := install(t, rt, gateNamed("a", nil), gateNamed("b", nil), noteNamed("a"))
	turn := snapshot(t, rt)
	if err := rt.Remove("a", "a"); err != nil {
		t.Fatal(err)
	}
	same(t, "gates of a new turn", planOf(t, rt, gatePhase), []string{"b"})
	same(t, "the other phases", planOf(t, rt, collectPhase), []string{})
	turn.Refresh()
	same(t, "gates of the running turn", idsOf(gatePhase.Plan(turn)), []string{"a", "b"})

	install(t, rt, gateNamed("a", nil)) // a new subscription with the same id
	if err := lease.Close(); err != nil {
		t.Fatal(err)
	}
	same(t, "the lease removes what it added, and not another of the same id", planOf(t, rt, gatePhase), []string{"a"})
}

// Remove removes all of the subscriptions or none.
//
// SPEC H-14
func TestRemoveRefuses(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil)
	install(t, rt, gateNamed("a", nil), gateNamed("b", &hook.Options{After: []string{"a"}}))
	if err := rt.Remove("a", "unknown"); err == nil || !strings.Contains(err.Error(), `"unknown"`) {
		t.Errorf("an unknown id: %v", err)
	}
	if _, ok := errors.AsType[*hook.InUseError](rt.Remove("a")); !ok {
		t.Error("an id that another one is ordered after was removed")
	}
	same(t, "gates after both", planOf(t, rt, gatePhase), []string{"a", "b"})
	if err := rt.Remove("a", "b"); err != nil {
		t.Error(err)
	}
	same(t, "gates after all", planOf(t, rt, gatePhase), []string{})
}
