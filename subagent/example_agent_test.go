package subagent_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/subagent"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// This example makes an agent with a subagent. A hook of the parent denies a call of the
// subagent.
func Example() {
	ctx := context.Background()
	main := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "invoke_subagent", Input: `{"name": "reviewer", "prompt": "Review the change to notes.md."}`}}},
		{Text: "The reviewer is content."},
	}, nil)
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "remove", Input: `{"path": "notes.md"}`}}},
		{Text: "Looks good. I could not remove the file."},
	}, nil)
	type file struct {
		Path string `json:"path"`
	}
	remove := belay.NewTool("remove", "Removes a file.", func(context.Context, file) (string, error) { return "removed", nil }, nil)
	noRemove := belay.ToolPre.On("no-remove", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
		return belay.Deny("nothing is removed here"), nil
	}, &hook.Options{Match: hook.Match{Tools: []string{"remove"}}})

	// docs:begin agent
	subagents := must(subagent.New(nil))
	must(subagents.Add(subagent.Subagent{
		Name: "reviewer", Description: "Reviews a change. Tell it which.",
		Factory: subagent.Agent(model, &belay.Options{Instructions: "You review changes.", Tools: []belay.Tool{remove}}),
	}))
	agent := must(belay.New(main, &belay.Options{Extensions: []belay.Extension{subagents}, Hooks: []hook.Subscription{noRemove}}))
	// docs:end agent

	for event, err := range agent.Session("demo").Run(ctx, "Have the change reviewed.") {
		switch {
		case err != nil:
			panic(err)
		case event.Subagent != nil:
			fmt.Println(event.Depth, event.Kind, event.Subagent.Name+event.Subagent.Status)
		case event.Result != nil:
			fmt.Println(event.Depth, event.Call.Tool, event.Result.Class, event.Result.IsError)
		case event.End != nil:
			fmt.Println(event.Depth, event.End.Text)
		}
	}
	// Output:
	// 1 subagent_invoked reviewer
	// 1 remove denied true
	// 1 Looks good. I could not remove the file.
	// 1 subagent_completed reviewersuccess
	// 0 invoke_subagent  false
	// 0 The reviewer is content.
}
