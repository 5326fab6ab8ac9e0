package looptest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/memstore"
)

// SPEC L-10: a session can be forked at any message.
func TestFork(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]belay.Store{"in a store": memstore.New(nil), "in the agent's own memory": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forkEverywhere(t, store)
		})
	}
}

func forkEverywhere(t *testing.T, store belay.Store) {
	t.Helper()
	steps := scriptOf(
		calls("echo", "echo"), says("one"), // messages: 1 user, 2 reminder, 3 calls, 4 results, 5 answer
		says("the gist"), // message 6: a summary
		calls("asked"),   // messages: 7 user, 8 reminder, 9 calls
		says("another"),  // message 10: a summary that keeps message 9
		says("two"),      // messages: 11 results, 12 answer
	)
	opts := &belay.Options{
		Store: store, Tools: []belay.Tool{echoTool("echo"), echoTool("asked")}, OnAsk: belay.AskPark,
		Authorizer: floorFunc(func(c belay.ToolCall) (belay.Authorization, error) {
			if c.Tool() == "asked" {
				return belay.Authorization{Decision: belay.ToolAsk}, nil
			}
			return belay.Authorization{}, nil
		}),
		Hooks: []hook.Subscription{tells("t", "", belay.Tell("mind")...)},
	}
	agent := agentOf(t, steps, opts)
	s := agent.Session("s")
	say(t, s, "a")
	succeeds(t, s.Compact(t.Context()))
	parked := takeTurn(t, s.Run(t.Context(), "b"), belay.EndParked)
	succeeds(t, s.Compact(t.Context()))
	settleAs(t, agent, parked.Waits[0].Approval, true)
	takeTurn(t, s.Resume(t.Context()), belay.EndTurn)
	all := transcript(t, s)
	if len(all) != 12 {
		t.Fatalf("the session has %v", outline(all))
	}
	for at := int64(1); at <= int64(len(all)); at++ {
		f, err := s.Fork(t.Context(), fmt.Sprint("fork ", at), at)
		if err != nil {
			t.Fatal(err)
		}
		copied := transcript(t, f)
		if diff := cmp.Diff(all[:at], copied[:at], plainMessages); diff != "" {
			t.Errorf("the fork at %d begins with something else:\n%s", at, diff)
		}
		turn, err := f.Turn(t.Context(), "c") // the script has no more steps
		if err == nil || turn.Reason != belay.EndError {
			t.Fatalf("the fork at %d ended %s: %v", at, turn.Reason, err)
		}
		requests := steps.Requests()
		wantAnswered(t, requests[len(requests)-1:])
		if request := last(t, requests).Messages; last(t, request).Kind != belay.KindReminder || request[len(request)-2].Text() != "c" {
			t.Errorf("the fork at %d goes on with %v", at, outline(request))
		}
		if got := len(transcript(t, s)); got != len(all) {
			t.Fatalf("forking at %d changed the session", at)
		}
	}
	for _, at := range []int64{0, -1, 13} {
		if _, err := s.Fork(t.Context(), "nowhere", at); !errors.Is(err, belay.ErrNotFound) {
			t.Errorf("a fork at %d: %v", at, err)
		}
	}
	if _, err := s.Fork(t.Context(), "s", 3); err == nil {
		t.Error("a session was forked into itself")
	}
	if _, err := s.Fork(t.Context(), "fork 3", 3); err == nil {
		t.Error("a session was forked into another")
	}
}

func succeeds(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A session that has only settings exists, so Fork must not overwrite it.
//
// SPEC L-10
func TestForkLeavesASessionWithSettingsAlone(t *testing.T) {
	t.Parallel()
	agent, model := newAgent(t, nil, says("one"), says("two"))
	from, to := agent.Session("from"), agent.Session("to")
	takeTurn(t, from.Run(t.Context(), "go"), belay.EndTurn)
	if err := to.SetReminders(t.Context(), belay.ReminderSettings{Standing: "be brief"}); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := from.Fork(t.Context(), "to", 1); err == nil {
		t.Error("the fork took the place of a session that has settings")
	}
	takeTurn(t, agent.Session("to").Run(t.Context(), "go"), belay.EndTurn)
	requests := model.Requests()
	last := requests[len(requests)-1].Messages
	if text := last[len(last)-1].Parts[0].Text; !strings.Contains(text, "be brief") {
		t.Errorf("the settings are gone: the last message of the request is %q", text)
	}
}
