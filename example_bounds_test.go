package belay_test

import (
	"context"
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
)

// Limits and budgets end a turn in an orderly way: the transcript is complete, and the
// reason says what happened.
func ExampleBudget() {
	ctx := context.Background()
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "search_notes", Input: `{"query": "milk"}`}}, Usage: belay.Usage{In: 900, Out: 300}},
	}, &scripted.Options{Repeat: true})

	// docs:begin bounds
	agent := must(belay.New(model, &belay.Options{
		Tools:      []belay.Tool{searchNotes},
		Limits:     belay.Limits{Steps: 20, Parallel: 4, Tool: time.Minute},
		Budget:     belay.Budget{TurnTokens: 2000, SessionCost: 5},
		Compaction: belay.Compaction{Share: 0.7},
		Retry:      hook.Retry{Attempts: 3, Delay: time.Second, Exponential: true, Cap: time.Minute, Jitter: 0.5},
	}))
	turn := must(agent.Session("demo").Turn(ctx, "What do I have on milk?"))
	fmt.Println(turn.Reason, "-", turn.Why)
	// docs:end bounds

	// Output:
	// budget - the turn has used 2400 tokens, and its limit is 2000
}
