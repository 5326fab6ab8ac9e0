package belay_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// Any code can watch the events. A watcher never slows down a turn. If the watcher is too
// slow, it gets the number of missed events.
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
