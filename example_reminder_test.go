package belay_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
)

// docs:begin reminder

// afterSearch sends a reminder to the model after a tool has run.
var afterSearch = belay.ToolPost.On("after-search", func(context.Context, belay.ToolResult) (belay.ToolReaction, error) {
	return belay.ToolReaction{Aside: belay.Aside{Context: belay.Tell("Notes may be out of date.")}}, nil
}, &hook.Options{Match: hook.Match{Tools: []string{"search_notes"}}})

// sayWhen does not let a turn end without a date.
var sayWhen = belay.TurnStop.On("say-when", func(_ context.Context, s belay.StopAttempt) (belay.StopVerdict, error) {
	if s.Text() == "Water the fern." {
		return belay.Continue("say when"), nil
	}
	return belay.StopVerdict{}, nil
}, nil)

// docs:end reminder

// Reminders of hooks are stored in the transcript, at the place where the model got them.
func ExampleReminder() {
	ctx := context.Background()
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "search_notes", Input: `{"query": "fern"}`}}},
		{Text: "Water the fern."},
		{Text: "Water the fern today."},
	}, nil)
	agent := must(belay.New(model, &belay.Options{
		Tools: []belay.Tool{searchNotes},
		Hooks: []hook.Subscription{afterSearch, sayWhen},
	}))
	must(agent.Session("demo").Turn(ctx, "What about the fern?"))

	for message, err := range agent.Session("demo").Messages(ctx) {
		check(err)
		fmt.Println(message.Seq, message.Kind)
		for _, part := range message.Parts {
			if part.Type == belay.PartText {
				fmt.Println(part.Text)
			}
		}
	}
	// Output:
	// 1 user
	// What about the fern?
	// 2 assistant
	// 3 results
	// 4 reminder
	// <system-reminder>
	// Notes may be out of date.
	// </system-reminder>
	// 5 assistant
	// Water the fern.
	// 6 reminder
	// <system-reminder>
	// Blocked by hook "say-when": the turn does not end yet: say when
	// </system-reminder>
	// 7 assistant
	// Water the fern today.
}
