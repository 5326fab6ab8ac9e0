package belay_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
)

// docs:begin ask

// AskFirst leaves every deployment to a person.
var AskFirst = belay.ToolPre.On("ask-first",
	func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
		return belay.Ask("deployments need approval"), nil
	}, &hook.Options{Match: hook.Match{Tools: []string{"deploy"}}})

// docs:end ask

func deployTool() belay.Tool {
	type target struct {
		Env string `json:"env"`
	}
	return belay.NewTool("deploy", "Deploys.", func(_ context.Context, in target) (string, error) {
		fmt.Println("deploying to", in.Env)
		return "deployed", nil
	}, nil)
}

// A turn that needs approval parks. It then needs only a row in the store and no goroutine.
// Someone decides, and the turn continues.
func ExampleSession_Resume() {
	ctx := context.Background()
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "deploy", Input: `{"env": "staging"}`}}},
		{Text: "It is out."},
	}, nil)

	// docs:begin park
	agent := must(belay.New(model, &belay.Options{
		Tools: []belay.Tool{deployTool()},
		Hooks: []hook.Subscription{AskFirst},
		OnAsk: belay.AskPark,
	}))
	session := agent.Session("demo")

	var asked belay.Approval
	for event, err := range session.Run(ctx, "Deploy it.") {
		check(err)
		switch event.Kind {
		case belay.EventApprovalRequested: // with the call, so that a person can see what it is about
			asked = *event.Approval
			fmt.Printf("%s asks: %s %s? %s\n", asked.By, asked.Tool, event.Call.Input, asked.Reason)
		case belay.EventTurnEnd:
			fmt.Println("the turn is", event.End.Reason)
		default:
		}
	}
	_, err := session.Turn(ctx, "Hello?")
	fmt.Println("another turn is refused:", errors.Is(err, belay.ErrParked))

	must(agent.Decide(ctx, belay.Decision{Approval: asked.ID, Hash: asked.Hash, Allow: true, By: "ann"}))
	turn := must(belay.Await(session.Resume(ctx)))
	fmt.Println(turn.Reason, "-", turn.Text)
	// docs:end park

	// Output:
	// ask-first asks: deploy {"env": "staging"}? deployments need approval
	// the turn is parked
	// another turn is refused: true
	// deploying to staging
	// end_turn - It is out.
}

// docs:begin approver

// person asks the user at the terminal.
type person struct{ answer bool }

func (p person) Approve(_ context.Context, q belay.Question) (belay.Decision, error) {
	fmt.Printf("may %s run with %s?\n", q.Tool, q.Input)
	return belay.Decision{Allow: p.answer, By: "ann", Reason: "not on a Friday"}, nil
}

// docs:end approver

// With an Approver, the turn does not park but waits for the answer.
func ExampleApprover() {
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "deploy", Input: `{"env": "prod"}`}}},
		{Text: "Ann would rather not."},
	}, nil)
	agent := must(belay.New(model, &belay.Options{
		Tools:    []belay.Tool{deployTool()},
		Hooks:    []hook.Subscription{AskFirst},
		Approver: person{answer: false},
	}))
	turn := must(agent.Session("demo").Turn(context.Background(), "Deploy it."))
	fmt.Println(turn.Reason, "-", turn.Text)
	// Output:
	// may deploy run with {"env": "prod"}?
	// end_turn - Ann would rather not.
}
