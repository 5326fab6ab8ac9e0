package looptest_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/belay-run/belay"
)

// If the paths of a call lead to other files after every approval, Belay asks a few times
// and then denies the call. The events contain each question before its answer, also the
// last question, which Belay answers itself.
//
// SPEC P-16, L-08
func TestACallWhosePathsKeepMovingIsDenied(t *testing.T) {
	t.Parallel()
	var d diary
	var asked atomic.Int64
	opts := everyCallAsks(&d, "")
	opts.Hooks = nil
	opts.Authorizer = floorFunc(func(belay.ToolCall) (belay.Authorization, error) {
		return belay.Authorization{Decision: belay.ToolAsk, Reason: "it acts", By: "floor", Places: fmt.Sprint("/place/", asked.Add(1))}, nil
	})
	opts.Approver = approverFunc(func(_ context.Context, q belay.Question) (belay.Decision, error) {
		return belay.Decision{Approval: q.ID, Hash: q.Hash, Allow: true, By: "ann"}, nil
	})
	agent, _ := newAgent(t, opts, callWith("act", `{"n":1}`))
	session := agent.Session("s")
	all := takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
	if ran := d.all(); len(ran) > 0 {
		t.Errorf("the call ran: %v", ran)
	}
	open, answered := make(map[string]bool), 0
	for _, e := range all.events {
		switch e.Kind {
		case belay.EventApprovalRequested:
			open[e.Approval.ID] = true
		case belay.EventApprovalDecided:
			if !open[e.Approval.ID] {
				t.Errorf("approval %s is decided by %s before it is requested", e.Approval.ID, e.Approval.Decided.By)
			}
			delete(open, e.Approval.ID)
			answered++
		default:
		}
	}
	if len(open) > 0 || answered != 4 {
		t.Errorf("%d questions are open and %d answered, want three answers of a person and Belay's own", len(open), answered)
	}
	if r := onlyResult(t, session); !strings.Contains(r.Text, "the paths of this call changed after each approval") {
		t.Errorf("the model got %q", r.Text)
	}
}
