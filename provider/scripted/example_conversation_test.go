package scripted_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// A model plays one step of its script for each request. A step can also be a fault.
func ExampleNew() {
	model := scripted.New([]scripted.Step{
		{Text: "Let me see.", Calls: []scripted.Call{{Tool: "read", Input: `{"path": "notes.md"}`}}},
		{Fault: &scripted.Fault{Kind: belay.ModelOverloaded, Status: 529}},
		{Text: "Buy milk.", Expect: &scripted.Expect{User: "to do"}},
	}, nil)

	request := &belay.Request{Messages: []*belay.Message{
		{Role: belay.RoleUser, Kind: belay.KindUser, Parts: []belay.Part{belay.Text("What is to do?")}},
	}}
	for model.Left() > 0 {
		for chunk, err := range model.Stream(context.Background(), request) {
			switch {
			case err != nil:
				fmt.Println("failed:", err)
			case chunk.Input != nil:
				fmt.Printf("%s %s: %q\n", chunk.Input.Call, chunk.Input.Tool, chunk.Input.Text)
			case chunk.Response != nil:
				fmt.Println("stopped:", chunk.Response.StopReason)
			default:
				fmt.Printf("%q\n", chunk.Text)
			}
		}
	}
	// Output:
	// "Let "
	// "me "
	// "see."
	// call_1 read: "{\"path\": "
	// call_1 read: "\"notes.md\"}"
	// stopped: tool_use
	// failed: model scripted/script: overloaded (HTTP 529)
	// "Buy "
	// "milk."
	// stopped: end_turn
}
