package belay_test

import (
	"context"
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// docs:begin typed-tool

// Urgency is a type of your program. The model may use no other value.
type Urgency string

// JSONSchema adds to the schema that is made from the Go type.
func (Urgency) JSONSchema() map[string]any {
	return map[string]any{"enum": []string{"low", "normal", "high"}}
}

// Ticket is the input of a tool.
type Ticket struct {
	Title   string        `json:"title" minLength:"3" maxLength:"80" jsonschema:"what is wrong, in a few words"`
	Urgency Urgency       `json:"urgency,omitempty" default:"normal"`
	Labels  []string      `json:"labels,omitempty" enum:"bug,billing,question" maxItems:"2"`
	Remind  time.Duration `json:"remind,omitempty" jsonschema:"when to ask again, such as 90m"`
	Due     *time.Time    `json:"due" jsonschema:"leave it out if there is no deadline"`
	Copies  int           `json:"copies,omitempty" minimum:"1" maximum:"5" default:"1"`
}

var openTicket = belay.NewTool("open_ticket", "Opens a ticket.",
	func(ctx context.Context, in Ticket) (string, error) {
		call := belay.CallOf(ctx) // its session, its id, its progress
		return fmt.Sprintf("%s: %s, %s, %d copy, asked again in %s", call.ID, in.Title, in.Urgency, in.Copies, in.Remind), nil
	}, nil)

// docs:end typed-tool

func ExampleNewTool_types() {
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "open_ticket", Input: `{"title": "No", "urgency": "urgent", "labels": ["bug", "crash"], "copies": 9, "remind": "soon"}`}}},
		{Calls: []scripted.Call{{Tool: "open_ticket", Input: `{"title": "No login", "due": null, "remind": "1h30m"}`}}},
		{Text: "done"},
	}, nil)
	agent := must(belay.New(model, &belay.Options{Tools: []belay.Tool{openTicket}}))
	for event, err := range agent.Session("demo").Run(context.Background(), "I cannot log in.") {
		if err != nil {
			panic(err)
		}
		if event.Kind == belay.EventToolUseResult {
			fmt.Println(event.Result.Text)
		}
	}
	// Output:
	// The input of open_ticket does not match its schema:
	// - /copies: 9 is more than the maximum 5
	// - /labels/1: "crash" is not one of "bug", "billing", "question"
	// - /remind: "soon" is not a duration: write it as 90s or 1h30m
	// - /title: "No": want at least 3 characters, got 2
	// - /urgency: "urgent" is not one of "low", "normal", "high"
	// call_2: No login, normal, 1 copy, asked again in 1h30m0s
}
