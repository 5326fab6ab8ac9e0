package storetest

import (
	"context"
	"testing"

	"github.com/belay-run/belay"
)

// TestTurnsOfTheGone checks what an implementation of [belay.TurnStore] does with the
// claims of a process that has ended. open returns an empty store. end ends the process of
// a store in any way, and opens the store in another process.
func TestTurnsOfTheGone(t *testing.T, open func(t testing.TB) belay.TurnStore, end func(t testing.TB, s belay.TurnStore) belay.TurnStore) {
	t.Helper()
	for _, r := range goneRules {
		t.Run(r.name, func(t *testing.T) { r.check(t, &turns{open(t), turnPatience}, end) })
	}
}

// goneRule is a requirement for the claims of a holder that has ended.
type goneRule struct {
	name  string
	check func(t testing.TB, s *turns, end func(t testing.TB, s belay.TurnStore) belay.TurnStore)
}

var goneRules = []goneRule{
	{"a turn that was not started is due again", func(t testing.TB, s *turns, end func(testing.TB, belay.TurnStore) belay.TurnStore) {
		s.submit(t, "a", "x", "m", "one")
		s.submit(t, "a", "y", "", "two")
		s.claim(t, belay.TurnFilter{}, "a")
		s.TurnStore = end(t, s.TurnStore)
		wantTurn(t, s, "x", "m")
	}},
	{"an open turn continues with its own agent, whatever the agent of the next turn", func(t testing.TB, s *turns, end func(testing.TB, belay.TurnStore) belay.TurnStore) {
		turn := s.submit(t, "a", "x", "m", "one")
		s.submit(t, "a", "y", "", "two")
		s.claim(t, belay.TurnFilter{}, "a")
		s.begin(t, turn, &belay.SessionState{Turns: 1, Turn: &belay.TurnState{ID: "turn"}})
		s.TurnStore = end(t, s.TurnStore)
		wantTurn(t, s, "x", "m")
	}},
	{"if the turn had ended, the next queued turn is due, with its own agent", func(t testing.TB, s *turns, end func(testing.TB, belay.TurnStore) belay.TurnStore) {
		turn := s.submit(t, "a", "x", "m", "one")
		s.submit(t, "a", "y", "", "two")
		s.claim(t, belay.TurnFilter{}, "a")
		s.begin(t, turn, &belay.SessionState{Turns: 1, Last: belay.EndTurn})
		s.TurnStore = end(t, s.TurnStore)
		wantTurn(t, s, "y", "")
	}},
}

// begin begins a queued turn and stores a state of the session.
func (s *turns) begin(t testing.TB, turn belay.QueuedTurn, state *belay.SessionState) {
	t.Helper()
	ctx := context.Background()
	stored, err := s.Open(ctx, turn.Session)
	if err == nil {
		err = s.Commit(ctx, &belay.Commit{Session: turn.Session, Epoch: stored.Epoch, Queued: turn.ID, Messages: []*belay.Message{user(stored.Last+1, turn.Text)}, State: state})
	}
	if err != nil {
		t.Fatalf("starting a turn: %v", err)
	}
}

// wantTurn claims the turn of session "a" and asserts its agent and its model.
func wantTurn(t testing.TB, s *turns, agent, model string) {
	t.Helper()
	if due := s.claim(t, belay.TurnFilter{}, "a"); due.Agent != agent || due.Model != model {
		t.Errorf("the turn is of agent %q with model %q, want %q with %q", due.Agent, due.Model, agent, model)
	}
}
