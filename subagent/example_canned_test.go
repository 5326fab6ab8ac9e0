package subagent_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/subagent"
)

// In this example, the subagent is a function. The tool delegate runs several tasks in
// parallel.
func ExampleCanned() {
	ctx := context.Background()
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "delegate", Input: `{"tasks": [{"name": "shouter", "prompt": "hello"}, {"name": "singer", "prompt": "hello"}]}`}}},
		{Text: "One of them can."},
	}, nil)

	// docs:begin canned
	subagents := must(subagent.New(&subagent.Options{Delegate: true}))
	must(subagents.Add(subagent.Subagent{
		Name: "shouter", Description: "Says it louder.",
		Factory: subagent.Canned(func(_ context.Context, prompt string) (string, error) { return strings.ToUpper(prompt), nil }),
	}))
	// docs:end canned

	agent := must(belay.New(model, &belay.Options{Extensions: []belay.Extension{subagents}}))
	must(agent.Session("demo").Turn(ctx, "Who can shout or sing?"))
	fmt.Println(model.Requests()[1].Messages[2].Parts[0].Result.Text)
	// Output:
	// [{"subagent":"shouter","content":"HELLO"},{"subagent":"singer","error":"there is no subagent \"singer\": available are shouter","class":"not_found"}]
}
