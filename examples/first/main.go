// Command first is a whole agent: a model, a tool and a hook.
package main

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
)

func main() {
	model := scripted.New([]scripted.Step{ // plays a script; for a real model use anthropic.New("claude-sonnet-4-5", nil)
		{Text: "I publish the notes.", Calls: []scripted.Call{{Tool: "write", Input: `{"Path": "/srv/prod/notes.md"}`}}},
		{Text: "Then as a draft.", Calls: []scripted.Call{{Tool: "write", Input: `{"Path": "drafts/notes.md"}`}}},
		{Text: "The notes are in drafts, for you to publish.\n"},
	}, nil)
	write := belay.NewTool("write", "Writes a file.", func(context.Context, struct{ Path string }) (string, error) { return "written", nil }, nil)
	// docs:begin first
	noProd := belay.ToolPre.On("no-prod", func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
		var in struct{ Path string }
		if err := call.Decode(&in); err != nil {
			return belay.Pass, err // tool.pre is a gate: an error denies
		}
		if strings.HasPrefix(path.Clean(in.Path)+"/", "/srv/prod/") {
			return belay.Deny("production is off limits"), nil
		}
		return belay.Pass, nil
	}, nil)
	agent, err := belay.New(model, &belay.Options{Tools: []belay.Tool{write}, Hooks: []hook.Subscription{noProd}})
	if err != nil {
		panic(err)
	}
	// docs:end first
	for event, err := range agent.Session("first").Run(context.Background(), "Publish the notes.") {
		if err != nil {
			panic(err)
		}
		fmt.Print(event.Text) // print text as it arrives; if there are subagents, only where event.Depth is 0
		if event.Result != nil {
			fmt.Printf("\n  %s: %s\n", event.Call.Tool, event.Result.Text)
		}
	}
}
