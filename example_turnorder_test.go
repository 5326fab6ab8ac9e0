package belay_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// docs:begin turn-order

// trace prints the name of a phase whenever it fires.
func trace[In any, Out hook.Output](phase hook.Phase[In, Out]) hook.Subscription {
	return phase.On("trace."+phase.Name(), func(context.Context, In) (Out, error) {
		var none Out
		fmt.Println("  " + phase.Name())
		return none, nil
	}, nil)
}

// tracedStore prints each commit.
type tracedStore struct{ belay.Store }

func (s tracedStore) Commit(ctx context.Context, c *belay.Commit) error {
	fmt.Print("COMMIT")
	for _, m := range c.Messages {
		fmt.Print(" ", m.Kind)
	}
	fmt.Println()
	return s.Store.Commit(ctx, c)
}

// docs:end turn-order

// A turn with one tool call: its phases and commits, in order.
func Example_turnOrder() {
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "search_notes", Input: `{"query": "fern"}`}}},
		{Text: "Water it."},
	}, nil)

	// docs:begin turn-order-run
	agent, err := belay.New(model, &belay.Options{
		Tools: []belay.Tool{searchNotes},
		Store: tracedStore{memstore.New(nil)},
		Hooks: []hook.Subscription{
			trace(belay.SessionStart), trace(belay.UserPromptSubmit), trace(belay.TurnPrePolicy), trace(belay.TurnPrePromptContext),
			trace(belay.TurnPostPreflightPromptContext), trace(belay.TurnPreToolMaterialization), trace(belay.TurnPrePromptCompile),
			trace(belay.TurnPostPromptCompile), trace(belay.ModelPre), trace(belay.ToolPre), trace(belay.ModelPost), trace(belay.ToolPost),
			trace(belay.TurnStop), trace(belay.TurnPostTurn),
		},
	})
	if err != nil {
		panic(err)
	}
	turn, err := agent.Session("demo").Turn(context.Background(), "What about the fern?")
	if err != nil {
		panic(err)
	}
	fmt.Println(turn.Reason)
	// docs:end turn-order-run

	// Output:
	//   session.start
	//   user.prompt.submit
	//   turn.pre_policy
	//   turn.pre_prompt_context
	//   turn.post_preflight_prompt_context
	//   turn.pre_tool_materialization
	//   turn.pre_prompt_compile
	//   turn.post_prompt_compile
	// COMMIT user
	//   model.pre
	//   tool.pre
	// COMMIT assistant
	//   model.post
	//   tool.post
	// COMMIT results
	//   model.pre
	//   turn.stop
	// COMMIT assistant
	//   model.post
	//   turn.post_turn
	// COMMIT
	// end_turn
}
