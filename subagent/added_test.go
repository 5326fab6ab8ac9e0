package subagent_test

import (
	"testing"

	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/subagent"
)

// Subagents can be added to an agent that is in use.
//
// SPEC E-11
func TestSubagentsAreAddedLater(t *testing.T) {
	t.Parallel()
	agent := belaytest.New(t, belaytest.Script(
		belaytest.Says("hello"), belaytest.Calls("invoke_subagent", `{"name": "reviewer", "prompt": "look"}`), belaytest.Says("done"),
	), nil)
	agent.Say("hello").Request(1).Offers()
	subagents, err := subagent.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	model := scripted.New([]scripted.Step{{Text: "looks good"}}, nil)
	if _, err := subagents.Add(subagent.Subagent{Name: "reviewer", Factory: subagent.Agent(model, nil)}); err != nil {
		t.Fatal(err)
	}
	if _, err := agent.Add(t.Context(), subagents); err != nil {
		t.Fatal(err)
	}
	agent.Say("go").Result("invoke_subagent", "looks good")
}
