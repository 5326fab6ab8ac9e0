package looptest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// A queued turn needs a session, an agent and a message. Otherwise NewQueuedTurn returns
// an error.
func TestNewQueuedTurn(t *testing.T) {
	t.Parallel()
	for rule, test := range map[string]struct{ session, agent, text, problem string }{
		"a turn needs a session": {"", "main", "x", "id is empty"},
		"a turn needs an agent":  {"a", "", "x", "name is empty"},
		"a turn needs a message": {"a", "main", " \n", "empty"},
		"a message is UTF-8":     {"a", "main", "\xff", "UTF-8"},
		"a whole one is taken":   {"a", "main", "x", ""},
	} {
		turn, err := belay.NewQueuedTurn(test.session, test.agent, test.text)
		switch {
		case test.problem == "" && (err != nil || turn.ID == "" || turn.Time.IsZero()):
			t.Errorf("%s: %+v, %v", rule, turn, err)
		case test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)):
			t.Errorf("%s: %v, want an error that says %q", rule, err, test.problem)
		}
	}
}

// If a store cannot keep queued messages, the error says what to do.
func TestSubmitNeedsATurnStore(t *testing.T) {
	t.Parallel()
	agent, err := belay.New(scripted.New(nil, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := agent.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if _, err := agent.Session("a").Submit(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "store/postgres") {
		t.Errorf("Submit: %v", err)
	}
	if _, err := agent.Session("a").RunDue(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "store/postgres") {
		t.Errorf("Take: %v", err)
	}
	if agent.Name() != "main" || agent.ModelName() == "" {
		t.Errorf("the agent is %q with the model %q", agent.Name(), agent.ModelName())
	}
}
