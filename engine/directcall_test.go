package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/belay-run/belay"
)

// A queued turn that is handed over before its message is stored begins again in the next
// process, and its directives run again. The calls of RunTool then have the same ids and
// keys, so that a payment service pays once. Other calls have other keys.
//
// SPEC D-04, T-16
func TestDirectCallsOfAQueuedTurnKeepTheirKeys(t *testing.T) {
	t.Parallel()
	s := openFile(t, "")
	var keys, ids []string // of one process
	handOver := context.CancelCauseFunc(nil)
	run := func(store belay.Store) *belay.Agent {
		tool := func(name string) belay.Tool {
			return belay.NewRawTool(belay.ToolDeclaration{Name: name, Description: name}, func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
				keys, ids = append(keys, call.Key()), append(ids, call.ID)
				return belay.Result{Text: "ok"}, nil
			}, nil)
		}
		directive := func(name string) belay.Directive {
			return belay.Directive{Name: name, Description: name, Run: func(_ context.Context, use *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
				for _, tool := range []string{"pay", "pay", "mail"} {
					if _, err := use.Controls.RunTool(tool, json.RawMessage(`{}`)); err != nil {
						return belay.DirectiveOutcome{}, err
					}
				}
				if handOver != nil && name == "second" {
					handOver(belay.ErrHandedOver)
				}
				return belay.DirectiveOutcome{}, nil
			}}
		}
		return newAgent(t, model{}, belay.Options{Store: store, Tools: []belay.Tool{tool("pay"), tool("mail")}, Directives: []belay.Directive{directive("first"), directive("second")}})
	}
	submit(t, s, "main", "a", "/first and /second")
	submit(t, s, "main", "a", "/first and /second")

	var ctx context.Context
	ctx, handOver = context.WithCancelCause(t.Context())
	first := run(s)
	if _, err := first.Session("a").RunDue(ctx, nil); !errors.Is(err, belay.ErrHandedOver) {
		t.Fatalf("the first process: %v", err)
	}
	if err := first.Session("a").Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, beforeIDs := keys, ids
	keys, ids, handOver = nil, nil, nil
	second := run(s)
	if turn, err := second.Session("a").RunDue(t.Context(), nil); err != nil || turn.Reason != belay.EndTurn {
		t.Fatalf("the second process: %+v, %v", turn, err)
	}
	if len(before) != 6 || !slices.Equal(before, keys) || !slices.Equal(beforeIDs, ids) {
		t.Errorf("the keys are %q with the ids %q,\nand after the handover %q with %q", before, beforeIDs, keys, ids)
	}
	if turn, err := second.Session("a").RunDue(t.Context(), nil); err != nil || turn.Reason != belay.EndTurn {
		t.Fatalf("the next turn: %+v, %v", turn, err)
	}
	if slices.Sort(keys); len(keys) != 12 || len(slices.Compact(keys)) != 12 {
		t.Errorf("the keys of the two turns are %q, want 12 that differ", keys)
	}
}
