package memory_test

import (
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/memory"
)

// The extension can be added to an agent that is already in use.
//
// SPEC E-11
func TestMemoryIsAddedLater(t *testing.T) {
	t.Parallel()
	memories, sessions := newStore(t), newSessions(t)
	add(t, memories, memory.Draft{Text: "The tea is in the kitchen."})
	agent := belaytest.New(t, belaytest.Script(belaytest.Says("hello"), belaytest.Says("in the kitchen")), &belay.Options{Store: sessions})
	says(t, agent, "one", "Where is the tea?")
	extension, err := memory.New(memories, &memory.Options{Transcript: sessions})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agent.Add(t.Context(), extension); err != nil {
		t.Fatal(err)
	}
	turn := says(t, agent, "two", "Where is the tea?")
	if system := turn.Request(1).System; !strings.Contains(system, "The tea is in the kitchen.") && !strings.Contains(agentText(turn), "The tea is in the kitchen.") {
		t.Errorf("the request does not recall it:\n%s", system)
	}
}

// agentText returns all text of the first request.
func agentText(turn *belaytest.Turn) string {
	var all strings.Builder
	for _, m := range turn.Requests[0].Messages {
		all.WriteString(m.Text() + "\n")
	}
	return all.String()
}
