package looptest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// A turn whose approvals have all expired does not lock the session: the next message ends
// it, its calls do not run, and the record says that the approvals expired. Before the last approval expires, the next message is
// refused.
//
// SPEC P-09
func TestExpiredApprovalsDoNotLockTheSession(t *testing.T) {
	t.Parallel()
	for place, store := range stores() {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var d diary
				opts := everyCallAsks(&d, belay.AskPark)
				opts.Store, opts.ApprovalExpiry = store(), time.Hour
				agent, _ := newAgent(t, opts, scripted.Step{Calls: []scripted.Call{{Tool: "act", Input: `{"n":1}`}, {Tool: "act", Input: `{"n":2}`}}}, scripted.Step{Text: "hello"})
				session := agent.Session("s")
				takeTurn(t, session.Run(t.Context(), "go"), belay.EndParked)
				<-time.After(time.Hour - time.Second)
				if turn, err := session.Turn(t.Context(), "hi"); !errors.Is(err, belay.ErrParked) || turn.Reason != belay.EndError {
					t.Errorf("before the expiry the next message gives %+v, %v, want ErrParked", turn, err)
				}
				<-time.After(time.Second)
				if turn, err := session.Turn(t.Context(), "hi"); err != nil || turn.Text != "hello" {
					t.Errorf("after the expiry the next message gives %+v, %v", turn, err)
				}
				refused := 0
				for m, err := range session.Messages(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					for i := range m.Parts {
						if r := m.Parts[i].Result; r != nil && r.IsError {
							refused++
						}
					}
				}
				if refused != 2 {
					t.Errorf("%d calls have an error as their result, want 2", refused)
				}
				const expired = "deny by expiry: nobody decided before the approval expired"
				wantEqual(t, "what happened", d.all(), []string{expired, expired})
			})
		})
	}
}
