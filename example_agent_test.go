package belay_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// docs:begin tool

// Search is the input of a tool: its fields and their tags become the schema.
type Search struct {
	Query string `json:"query" jsonschema:"a word to look for"`
	Most  int    `json:"most,omitempty" jsonschema:"how many notes to return; all if left out"`
}

var searchNotes = belay.NewTool("search_notes", "Searches the user's notes.",
	func(_ context.Context, in Search) ([]string, error) {
		var found []string
		for _, note := range []string{"buy milk", "call Ann about the milk", "water the fern"} {
			if strings.Contains(note, in.Query) && (in.Most == 0 || len(found) < in.Most) {
				found = append(found, note)
			}
		}
		return found, nil // the model gets it as JSON
	}, nil)

// docs:end tool

// An agent is a model with tools. Its turns are streams of events.
func ExampleNew() {
	ctx := context.Background()
	model := scripted.New([]scripted.Step{
		{Text: "Let me look.", Calls: []scripted.Call{{Tool: "search_notes", Input: `{"query": "milk"}`}}},
		{Text: "Two notes are about milk."},
	}, nil)

	// docs:begin agent
	agent, err := belay.New(model, &belay.Options{
		Instructions: "You look after the user's notes.",
		Tools:        []belay.Tool{searchNotes},
	})
	if err != nil {
		panic(err)
	}
	defer func() { _ = agent.Close(ctx) }()

	for event, err := range agent.Session("demo").Run(ctx, "What do I have on milk?") {
		if err != nil {
			panic(err) // the runtime failed, or the turn was aborted
		}
		switch event.Kind {
		case belay.EventTextDelta:
			fmt.Print(event.Text)
		case belay.EventToolUse:
			fmt.Printf("\n-> %s %s\n", event.Call.Tool, event.Call.Input)
		case belay.EventToolUseResult:
			fmt.Printf("<- %s\n", event.Result.Text)
		case belay.EventTurnEnd:
			fmt.Printf("\n%s after %d steps\n", event.End.Reason, event.End.Steps)
		default:
		}
	}
	// docs:end agent

	// Output:
	// Let me look.
	// -> search_notes {"query": "milk"}
	// <- ["buy milk","call Ann about the milk"]
	// Two notes are about milk.
	// end_turn after 2 steps
}
