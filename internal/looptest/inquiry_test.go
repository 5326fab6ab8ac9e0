package looptest_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// If somebody else decides while the approver is asked, Belay cancels the approver's
// question and uses that decision. The cancel cause says who decided. Other questions
// stay open.
//
// SPEC P-08
func TestAQuestionAnsweredElsewhereIsWithdrawn(t *testing.T) {
	t.Parallel()
	for word, allow := range map[string]bool{"yes": true, "no": false} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var d diary
				store := memstore.New(nil)
				opts := everyCallAsks(&d, "")
				opts.Store = store
				second := make(chan struct{})
				opts.Approver = approverFunc(func(ctx context.Context, q belay.Question) (belay.Decision, error) {
					if strings.Contains(string(q.Input), "2") {
						<-second
						if ctx.Err() != nil {
							t.Error("a question is withdrawn that nobody has answered")
						}
						return belay.Decision{Allow: true, By: "ann"}, nil
					}
					if _, err := store.Decide(ctx, belay.Decision{Approval: q.ID, Hash: q.Hash, Allow: allow, By: "bob", Reason: "I said"}); err != nil {
						t.Error(err)
					}
					<-ctx.Done() // nobody answers this question
					if got := context.Cause(ctx).Error(); got != "the approval was already decided by bob" {
						t.Errorf("it is withdrawn for: %s", got)
					}
					close(second)
					return belay.Decision{}, context.Cause(ctx)
				})
				agent, _ := newAgent(t, opts, scripted.Step{Calls: []scripted.Call{{Tool: "act", Input: map[string]any{"n": 1}}, {Tool: "act", Input: map[string]any{"n": 2}}}})
				all := takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
				want := []string{"allow by bob: I said", "allow by ann: ", `ran {"n":1}`, `ran {"n":2}`}
				if !allow {
					want = []string{"deny by bob: I said", "allow by ann: ", `ran {"n":2}`}
				}
				if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(d.all()))); diff != "" {
					t.Errorf("what happened (-want +got):\n%s", diff)
				}
				for _, e := range all.of(belay.EventApprovalDecided) {
					if e.Text != "" {
						t.Errorf("unexpected event: %s", e.Text)
					}
				}
			})
		})
	}
}

// If the approver answers after somebody else has decided differently, the event
// approval_decided contains the approver's answer.
//
// SPEC P-08
func TestWhoAnswersTooLateIsTold(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule         string
		theirs, ours bool
		want         string
	}{
		{"no after yes", true, false, "ann answered no here, but somebody else had already decided"},
		{"yes after no", false, true, "ann answered yes here, but somebody else had already decided"},
		{"yes after yes", true, true, ""},
		{"no after no", false, false, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			var d diary
			store := memstore.New(nil)
			opts := everyCallAsks(&d, "")
			opts.Store = store
			opts.Approver = approverFunc(func(ctx context.Context, q belay.Question) (belay.Decision, error) {
				_, err := store.Decide(ctx, belay.Decision{Approval: q.ID, Hash: q.Hash, Allow: test.theirs, By: "bob"})
				return belay.Decision{Allow: test.ours, By: "ann"}, err
			})
			agent, _ := newAgent(t, opts, callWith("act", `{"n":1}`))
			all := takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
			decided := all.of(belay.EventApprovalDecided)
			if len(decided) != 1 || decided[0].Approval.Decided.By != "bob" || decided[0].Text != test.want {
				t.Errorf("the events have %+v, want bob's decision and %q", decided, test.want)
			}
			if ran := len(d.all()) > 1; ran != test.theirs {
				t.Errorf("it ran: %t, want what bob said", ran)
			}
		})
	}
}
