package storetest

import (
	"context"
	"testing"

	"github.com/belay-run/belay"
)

// TestTurnsOfTheGone tests what an implementation of [belay.TurnStore] does with the
// claims of a process that ends before it has settled them. open returns an empty store.
// end ends its process, in any way, and opens the store in another process.
func TestTurnsOfTheGone(t *testing.T, open func(t testing.TB) belay.TurnStore, end func(t testing.TB, s belay.TurnStore) belay.TurnStore) {
	t.Helper()
	for _, r := range goneRules {
		t.Run(r.name, func(t *testing.T) { r.check(t, &turns{open(t), turnPatience}, end) })
	}
}

// goneRule is one requirement for a claim whose holder has ended.
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

// begin starts a queued turn, and leaves the session in a state.
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

// wantTurn claims the turn of session a, which must belong to the agent.
func wantTurn(t testing.TB, s *turns, agent, model string) {
	t.Helper()
	if due := s.claim(t, belay.TurnFilter{}, "a"); due.Agent != agent || due.Model != model {
		t.Errorf("the turn is of agent %q with model %q, want %q with %q", due.Agent, due.Model, agent, model)
	}
}
