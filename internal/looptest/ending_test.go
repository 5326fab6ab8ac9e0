package looptest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// The store keeps who blocked a turn, or what went wrong. The next successful turn clears
// this record.
//
// SPEC L-01
func TestEndingIsStored(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 3000)
	tests := map[string]struct {
		steps []scripted.Step
		hooks []hook.Subscription
		end   belay.EndReason
		want  belay.Ending
	}{
		"blocked": {nil, []hook.Subscription{belay.UserPromptSubmit.On("no-secrets", func(context.Context, belay.UserPrompt) (belay.PromptVerdict, error) {
			return belay.DenyPrompt("it has a key in it"), nil
		}, nil)}, belay.EndBlocked, belay.Ending{By: "no-secrets", Why: "it has a key in it"}},
		"failed": {[]scripted.Step{{Fault: &scripted.Fault{Kind: belay.ModelAuth, Status: 401}}}, nil, belay.EndError, belay.Ending{Why: "401"}},
		"failed, with end phases": {[]scripted.Step{{Fault: &scripted.Fault{Kind: belay.ModelAuth, Status: 401}}}, []hook.Subscription{
			belay.TurnPostTurn.On("audit", func(context.Context, belay.TurnEnded) (belay.Note, error) { return belay.Note{}, nil }, nil),
		}, belay.EndError, belay.Ending{Why: "401"}},
		"cut": {[]scripted.Step{{Compute: func(context.Context, *belay.Request) (scripted.Step, error) {
			return scripted.Step{}, errors.New(long)
		}}}, nil, belay.EndError, belay.Ending{Why: "éé…"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memstore.New(nil)
			s := agentOf(t, scriptOf(append(test.steps, says("well"))...), &belay.Options{Store: store, Hooks: test.hooks}).Session("s")
			_ = take(s.Run(t.Context(), "a")) // ignore the result: the test reads the reason from the store
			state := stored(t, store, "s")
			if state.Last != test.end || state.Ending == nil {
				t.Fatalf("it ended %s, %+v", state.Last, state.Ending)
			}
			if got := *state.Ending; got.By != test.want.By || !strings.HasSuffix(got.Why, test.want.Why) && !strings.Contains(got.Why, test.want.Why) || len([]rune(got.Why)) > 2001 {
				t.Errorf("the ending is %+v, want %+v", got, test.want)
			}
			if test.end == belay.EndBlocked {
				return // the hook blocks the next turn too
			}
			_ = take(s.Run(t.Context(), "b"))
			if state := stored(t, store, "s"); state.Last != belay.EndTurn || state.Ending != nil {
				t.Errorf("the next turn ended %s, %+v", state.Last, state.Ending)
			}
		})
	}
}

// stored returns the state of a session in the store.
func stored(t *testing.T, store belay.ListStore, id string) belay.SessionState {
	t.Helper()
	for info, err := range store.Sessions(t.Context(), belay.SessionFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if info.ID == id {
			return info.State
		}
	}
	t.Fatalf("there is no session %q", id)
	return belay.SessionState{}
}
