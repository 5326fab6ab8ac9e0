package belay_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// Any code can watch events. A watcher does not slow down a turn: a watcher that is too
// slow gets the number of events that it missed.
func ExampleAgent_Watch() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "search_notes", Input: `{"query": "fern"}`}}},
		{Text: "Water it."},
	}, nil)
	agent := must(belay.New(model, &belay.Options{Tools: []belay.Tool{searchNotes}}))

	// docs:begin watch
	events := agent.Watch(ctx, &belay.WatchOptions{Session: "demo"}) // it watches from here on
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event, err := range events {
			if missed, behind := errors.AsType[*belay.MissedError](err); behind {
				fmt.Println("missed", missed.Missed)
				continue
			}
			fmt.Println(event.Seq, event.Step, event.Kind)
			if event.Kind == belay.EventTurnEnd && event.Depth == 0 {
				return
			}
		}
	}()
	must(agent.Session("demo").Turn(ctx, "What about the fern?"))
	<-done
	// docs:end watch

	// Output:
	// 1 0 turn_start
	// 2 1 model_response
	// 3 1 token_consumption
	// 4 1 tool_use
	// 5 1 tool_use_result
	// 6 2 text_delta
	// 7 2 text_delta
	// 8 2 model_response
	// 9 2 token_consumption
	// 10 2 turn_end
}

// An audit log must not lose events: the turn waits for its watcher when the buffer is full.
func ExampleWatchOptions_lossless() {
	ctx := context.Background()
	agent := must(belay.New(scripted.New([]scripted.Step{{Text: "Water it."}}, nil), nil))
	var audit []string

	// docs:begin lossless
	events := agent.Watch(ctx, &belay.WatchOptions{Buffer: 1, Lossless: true})
	done := make(chan struct{})
	go func() { // never in the goroutine of the turn: the turn waits for this loop
		defer close(done)
		for event, err := range events {
			if err != nil {
				fmt.Println(err)
				return
			}
			audit = append(audit, string(event.Kind))
		}
	}()
	must(agent.Session("demo").Turn(ctx, "What about the fern?"))
	_ = agent.Close(ctx) // the watcher gets what still waits, and its loop ends
	<-done
	// docs:end lossless

	fmt.Println(audit)

	// Output:
	// [turn_start text_delta text_delta model_response token_consumption turn_end]
}
