package belay_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// If the first model fails, the second model answers.
func ExampleFallback() {
	first := scripted.New([]scripted.Step{
		{Fault: &scripted.Fault{Kind: belay.ModelAuth, Status: 401}},
		{Text: "From the first."},
	}, &scripted.Options{Name: "scripted/first"})
	second := scripted.New([]scripted.Step{
		{Text: "From the second."},
	}, &scripted.Options{Name: "scripted/second"})

	// docs:begin fallback
	agent, err := belay.New(belay.Fallback(first, second), nil)
	if err != nil {
		panic(err)
	}
	session := agent.Session("demo")
	for range 2 {
		turn, err := session.Turn(context.Background(), "Who answers?")
		if err != nil {
			panic(err)
		}
		fmt.Println(turn.Text)
	}
	// docs:end fallback

	for message, err := range session.Messages(context.Background()) {
		check(err)
		if message.Kind == belay.KindAssistant {
			fmt.Println(message.Model)
		}
	}

	// Output:
	// From the second.
	// From the first.
	// scripted/second
	// scripted/first
}
