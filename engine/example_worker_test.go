package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/engine"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/sqlite"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// The example submits a message, a worker answers it, and a watcher sees the answer. With
// store/postgres instead of store/sqlite, all three can run on different machines.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "belay-")
	check(err)
	defer func() { check(os.RemoveAll(dir)) }()
	store, err := sqlite.Open(ctx, filepath.Join(dir, "belay.db"), nil)
	check(err)
	defer func() { check(store.Close()) }()
	agent, err := belay.New(scripted.New([]scripted.Step{{Text: "It is tidy."}}, nil), &belay.Options{Store: store})
	check(err)
	defer func() { check(agent.Close(ctx)) }()

	// docs:begin submit
	_, err = agent.Session("demo").Submit(ctx, "tidy the changelog")
	check(err)
	// docs:end submit

	working, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		// docs:begin worker
		worker, err := engine.New(store, engine.Of(agent), &engine.Options{
			Turns:    8,
			PerModel: map[string]int{"claude-sonnet-4-5": 4},
		})
		check(err)
		err = worker.Run(working) // until working is done
		// docs:end worker
		ended <- err
	}()

	// docs:begin watch
	for update, err := range engine.Watch(ctx, store, "demo", 0) {
		check(err)
		if m := update.Message; m != nil {
			fmt.Println(m.Seq, m.Role, m.Text())
		} else if update.Info.State.Last == belay.EndTurn { // comes after its messages
			break
		}
	}
	// docs:end watch
	stop()
	check(errors.Join(<-ended))

	// Output:
	// 1 user tidy the changelog
	// 2 assistant It is tidy.
}
