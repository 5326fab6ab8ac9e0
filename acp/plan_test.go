package acp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/acp"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// The list of tasks of the agent is the plan of the session. A task that was given up is not
// in it, because the protocol has no word for that.
//
// SPEC U-05
func TestListOfTasksIsThePlan(t *testing.T) {
	t.Parallel()
	todo := belay.NewRawTool(belay.ToolDeclaration{Name: "todo_write", Description: "Keeps the list of tasks.", InputSchema: json.RawMessage(`{"type": "object"}`)},
		func(context.Context, *belay.Invocation) (belay.Result, error) { return belay.Result{Text: "kept"}, nil }, nil)
	store := memstore.New(nil)
	agent, err := belay.New(scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "todo_write", Input: `{"todos": [{"content": "look", "status": "completed"}, {"content": "write", "status": "in_progress"}, {"content": "sing", "status": "cancelled"}]}`}}},
		{Text: "Done."},
	}, nil), &belay.Options{Store: store, OnAsk: belay.AskPark, Tools: []belay.Tool{todo}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = agent.Close(context.Background()) }() // ignore errors: the store is in memory
	dir := project(t, nil)
	c := connect(t, acp.Fixed(agent, store, dir), dir)
	c.initialize(nil)
	c.say(c.open(), "Make a plan.")
	const want = `{"entries":[{"content":"look","priority":"medium","status":"completed"},{"content":"write","priority":"medium","status":"in_progress"}],"sessionUpdate":"plan"}`
	if got := c.transcript(); !strings.Contains(got, want) || strings.Contains(got, `"sessionUpdate":"tool_call"`) {
		t.Errorf("the editor got\n%s", got)
	}
}
