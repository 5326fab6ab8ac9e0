package belay_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// Ask for a Go value and handle all possible outcomes.
func ExampleAnswer_outcomes() {
	// docs:begin structured
	type Invoice struct {
		Number string  `json:"number" jsonschema:"as printed on the invoice"`
		Total  float64 `json:"total" jsonschema:"in euros, with tax"`
		Due    string  `json:"due,omitempty" jsonschema:"the due date as YYYY-MM-DD; leave it out if there is none"`
	}
	model := scripted.New([]scripted.Step{ // with a real model: anthropic.New("claude-sonnet-4-5", nil)
		{Calls: []scripted.Call{{Tool: "final_answer", Input: `{"number": "R-17", "total": "a lot"}`}}},
		{Calls: []scripted.Call{{Tool: "final_answer", Input: `{"number": "R-17", "total": 119}`}}},
	}, nil)
	agent, err := belay.New(model, nil)
	if err != nil {
		panic(err)
	}

	invoice, turn, err := belay.Answer[Invoice](context.Background(), agent.Session("demo"), "Read this invoice: R-17, 119 EUR.")
	switch {
	case errors.Is(err, belay.ErrNoAnswer): // the turn ended, but the model gave no value
		fmt.Println("no answer:", turn.Reason, turn.Text)
	case err != nil: // the runtime failed, or the context was cancelled
		fmt.Println("failed:", err)
	default:
		fmt.Println(invoice.Number, invoice.Total, "after", turn.Steps, "steps")
	}
	// docs:end structured

	// Output:
	// R-17 119 after 2 steps
}

// A type that is not a struct works too.
func ExampleAnswer_list() {
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "final_answer", Input: `{"answer": ["Ann", "Bob"]}`}}},
	}, nil)
	session := must(belay.New(model, nil)).Session("demo")
	// docs:begin structured-list
	names, _, err := belay.Answer[[]string](context.Background(), session, "Who is in the picture?", belay.Image("image/png", picture))
	// docs:end structured-list
	check(err)
	fmt.Println(names)
	// Output:
	// [Ann Bob]
}
