package toolbox_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/toolbox"
)

// asksWhere returns a model that asks where to deploy.
func asksWhere() *scripted.Model {
	return scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "ask_user", Input: `{"question": "Where to?", "options": ["staging", "production"]}`}}},
		{Text: "Then there."},
	}, nil)
}

// docs:begin asker

// terminal asks the person there.
type terminal struct{}

func (terminal) Ask(_ context.Context, in belay.Inquiry) (string, error) {
	fmt.Println(in.Text)
	var answer string
	_, err := fmt.Sscanln("2", &answer) // a real one reads what is typed
	return answer, err
}

// docs:end asker

// In this example, a person answers while the turn waits.
func ExampleAskUser() {
	// docs:begin answering
	agent, err := belay.New(asksWhere(), &belay.Options{
		Extensions: []belay.Extension{toolbox.AskUser()},
		Approver:   toolbox.Answering("ann", terminal{}, nil), // nil: an approver for everything else
	})
	// docs:end answering
	if err != nil {
		panic(err)
	}
	for event, err := range agent.Session("demo").Run(context.Background(), "Deploy it.") {
		if err != nil {
			panic(err)
		}
		if event.Result != nil {
			fmt.Println("the model is told:", event.Result.Text)
		}
	}
	// Output:
	// Where to?
	//   1. staging
	//   2. production
	// the model is told: production
}

// Without an asker, the turn parks. Any process that uses the store can answer later, and
// then the turn continues.
func ExampleAnswer() {
	ctx := context.Background()
	agent, err := belay.New(asksWhere(), &belay.Options{Extensions: []belay.Extension{toolbox.AskUser()}, OnAsk: belay.AskPark})
	if err != nil {
		panic(err)
	}
	session := agent.Session("demo")
	turn, err := session.Turn(ctx, "Deploy it.")
	if err != nil {
		panic(err)
	}
	fmt.Println(turn.Reason)

	// docs:begin answer
	for _, asked := range turn.Waits {
		if question, ok := toolbox.ReadQuestion(asked); ok {
			fmt.Println(question)
		}
		_, err := toolbox.Answer(asked, "ann", "the moon")
		fmt.Println("it is refused:", errors.Is(err, toolbox.ErrAnswer))
		decision, err := toolbox.Answer(asked, "ann", "staging")
		if err != nil {
			panic(err)
		}
		if _, err := agent.Decide(ctx, decision); err != nil {
			panic(err) // belay.ErrDecided: somebody was faster; belay.ErrExpired: it is too late
		}
	}
	turn, err = belay.Await(session.Resume(ctx))
	// docs:end answer
	if err != nil {
		panic(err)
	}
	fmt.Println(turn.Reason, "-", turn.Text)
	// Output:
	// parked
	// Where to?
	//   1. staging
	//   2. production
	// it is refused: true
	// end_turn - Then there.
}
