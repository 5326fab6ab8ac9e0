package belaytest_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/hook"
)

// Structured output and prompt context have assertions too.
func ExampleAnswer() {
	var t printer // in a test: the *testing.T
	home := belay.TurnPrePromptContext.On("home", func(context.Context, belay.TurnSoFar) (belay.PromptContext, error) {
		return belay.PromptContext{Entries: []belay.ContextEntry{{ID: "home", Text: "The user lives in Oslo."}}}, nil
	}, nil)

	// docs:begin answer
	type Trip struct {
		From string `json:"from"`
		Days int    `json:"days" minimum:"1"`
	}
	agent := belaytest.New(t, belaytest.Script(
		belaytest.Calls("final_answer", `{"from": "Oslo", "days": 0}`),
		belaytest.Calls("final_answer", `{"from": "Oslo", "days": 3}`),
	), &belay.Options{Hooks: []hook.Subscription{home}})

	trip, turn := belaytest.Answer[Trip](agent, "Plan a trip.")
	turn.HasContext("lives in Oslo", `from="home"`)
	turn.ResultFailed("final_answer", belay.ClassInvalid, "less than the minimum 1")
	turn.Answered(`{"from": "Oslo", "days": 3}`)
	// docs:end answer

	fmt.Println(trip.From, trip.Days)
	// Output:
	// Oslo 3
}
