package belay_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// docs:begin raw-tool

// build starts a build that takes longer than a process should wait.
var build = belay.NewRawTool(belay.ToolDeclaration{
	Name: "build", Description: "Builds a branch.",
	InputSchema: json.RawMessage(`{"type": "object", "properties": {"branch": {"type": "string"}}, "required": ["branch"]}`),
}, func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
	if call.Wait == "" { // the first time
		return belay.Result{}, belay.Park("build-42")
	}
	return belay.Result{Text: call.Wait + " is green"}, nil
}, &belay.ToolTraits{Idempotent: true})

// docs:end raw-tool

// A tool that must wait for a long time parks its call: it returns Park with the name of what
// it waits for. When the turn is resumed, the tool is called again and finds that name in
// Invocation.Wait.
func ExamplePark() {
	ctx := context.Background()
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "build", Input: `{"branch": "main"}`}}},
		{Text: "The build is green."},
	}, nil)
	agent := must(belay.New(model, &belay.Options{Tools: []belay.Tool{build}}))
	session := agent.Session("demo")

	turn := must(session.Turn(ctx, "Build main."))
	fmt.Println(turn.Reason)
	turn = must(belay.Await(session.Resume(ctx)))
	fmt.Println(turn.Reason, "-", turn.Text)
	// Output:
	// parked
	// end_turn - The build is green.
}
