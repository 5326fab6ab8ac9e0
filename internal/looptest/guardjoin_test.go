package looptest_test

import (
	"context"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// A hook that can hide a secret in a tool's output, and is added to the parent while a
// subagent runs, applies in the subagent's turn from the next step on. A hook that only
// adds context does not.
//
// SPEC H-14, S-07
func TestRedactionAddedToTheParentJoinsTheChild(t *testing.T) {
	t.Parallel()
	runtime := func() *hook.Runtime {
		rt, err := hook.NewRuntime(belay.Phases(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return rt
	}
	parent, child := runtime(), runtime()
	above, turn := parent.Snapshot(), child.Snapshot()
	t.Cleanup(func() {
		for _, s := range []*hook.Snapshot{turn, above} {
			if err := s.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	if err := turn.Inherit(above); err != nil {
		t.Fatal(err)
	}
	if _, err := parent.Install(belay.ToolPost.On("redact", nothing, nil), belay.TurnPostTurn.On("note", nothing, nil)); err != nil {
		t.Fatal(err)
	}
	turn.Refresh()
	if !belay.ToolPost.Active(turn) {
		t.Error("the redaction hook of the parent does not apply in the child's turn")
	}
	if belay.TurnPostTurn.Active(turn) {
		t.Error("a hook that guards nothing has joined a turn that had begun")
	}
}

// nothing is a handler that has no opinion.
func nothing[In any, Out hook.Output](context.Context, In) (out Out, err error) { return out, err }
