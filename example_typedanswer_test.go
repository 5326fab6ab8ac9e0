package belay_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// Triage is the answer that the turn must give.
type Triage struct {
	Severity string   `json:"severity" jsonschema:"low, medium or high"`
	Files    []string `json:"files" jsonschema:"the files that are to blame"`
}

// A turn can return a Go value. If the model's answer is invalid, it gets the errors and
// tries again.
func ExampleAnswer() {
	ctx := context.Background()
	model := scripted.New([]scripted.Step{
		{Text: "I think it is bad."},
		{Calls: []scripted.Call{{Tool: "final_answer", Input: `{"severity": "high"}`}}},
		{Calls: []scripted.Call{{Tool: "final_answer", Input: `{"severity": "high", "files": ["loop.go"]}`}}},
	}, nil)
	agent := must(belay.New(model, nil))

	triage, turn, err := belay.Answer[Triage](ctx, agent.Session("demo"), "Triage the crash report.")
	check(err)
	fmt.Println(triage.Severity, triage.Files)
	fmt.Println(turn.Reason, "after", turn.Steps, "steps")

	// These messages told the model what was wrong:
	for message, err := range agent.Session("demo").Messages(ctx) {
		check(err)
		for _, part := range message.Parts {
			switch {
			case part.IsReminder:
				fmt.Println(part.Text)
			case part.Result != nil:
				fmt.Println(part.Result.Text)
			}
		}
	}

	// Output:
	// high [loop.go]
	// end_turn after 3 steps
	// <system-reminder>
	// Give your final answer by calling the tool final_answer, and not as text.
	// </system-reminder>
	// The input of final_answer does not match its schema:
	// - /files: it is required
	// The answer was accepted.
}
