package belay_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// docs:begin progress-tool

// index is a tool that takes a while, and reports how far it is.
var index = belay.NewTool("index", "Indexes the user's documents.", func(ctx context.Context, _ struct{}) (string, error) {
	for done := 1; done <= 3; done++ {
		if err := ctx.Err(); err != nil { // the turn was cancelled, or the tool timed out
			return "", err
		}
		belay.CallOf(ctx).Progress(fmt.Sprintf("%d of 3 documents", done))
	}
	return "3 documents indexed", nil
}, nil)

// docs:end progress-tool

// A slow tool reports its progress.
func ExampleControls_Emit() {
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "index", Input: `{}`}}},
		{Text: "Done."},
	}, nil)
	// docs:begin progress-run
	agent, err := belay.New(model, &belay.Options{Tools: []belay.Tool{index}})
	if err != nil {
		panic(err)
	}
	for event, err := range agent.Session("demo").Run(context.Background(), "Index my documents.") {
		if err != nil {
			panic(err)
		}
		switch event.Kind {
		case belay.EventToolProgress:
			fmt.Println(event.Call.Tool, event.Call.ID, event.Text)
		case belay.EventToolUseResult:
			fmt.Println(event.Result.Text)
		default:
		}
	}
	// docs:end progress-run

	// Output:
	// index call_1 1 of 3 documents
	// index call_1 2 of 3 documents
	// index call_1 3 of 3 documents
	// 3 documents indexed
}
