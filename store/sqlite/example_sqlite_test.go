package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/sqlite"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// A conversation survives the end of the program. Another program opens the file and
// continues the conversation.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "belay")
	check(err)
	defer func() { check(os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "belay.db")

	model := scripted.New([]scripted.Step{{Text: "Noted."}, {Text: "You are Ann."}}, nil)

	// docs:begin open
	talk := func(text string) {
		store, err := sqlite.Open(ctx, path, nil)
		check(err)
		defer func() { check(store.Close()) }()

		agent, err := belay.New(model, &belay.Options{Store: store})
		check(err)
		defer func() { check(agent.Close(ctx)) }()

		turn, err := agent.Session("demo").Turn(ctx, text)
		check(err)
		fmt.Println(turn.Text)
	}
	talk("My name is Ann.")
	talk("Who am I?") // a minute or a year later
	// docs:end open

	store, err := sqlite.Open(ctx, path, nil)
	check(err)
	defer func() { check(store.Close()) }()
	for m, err := range store.Read(ctx, "demo", 0) {
		check(err)
		fmt.Println(m.Seq, m.Kind, m.Text())
	}
	// Output:
	// Noted.
	// You are Ann.
	// 1 user My name is Ann.
	// 2 assistant Noted.
	// 3 user Who am I?
	// 4 assistant You are Ann.
}

// An error about the file has the path and advice.
func ExampleFileError() {
	_, err := sqlite.Open(context.Background(), "/nowhere/belay.db", nil)
	problem, ok := errors.AsType[*sqlite.FileError](err)
	fmt.Println(ok, errors.Is(err, sqlite.ErrReadOnly))
	fmt.Println(problem.Remedy)
	// Output:
	// true true
	// create the directory /nowhere first
}

// The journal can list the newest runs first.
func ExampleStore_Journal() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "belay")
	check(err)
	defer func() { check(os.RemoveAll(dir)) }()
	store, err := sqlite.Open(ctx, filepath.Join(dir, "belay.db"), nil)
	check(err)
	defer func() { check(store.Close()) }()

	check(store.Journal().Append(ctx, []hook.Run{
		{ID: "1", Subscription: "no-prod", Phase: "tool.pre", State: hook.Completed},
		{ID: "2", Subscription: "audit", Phase: "tool.post", State: hook.Failed, Class: codes.Timeout},
	}))
	// docs:begin list
	journal := store.Journal().(hook.ListJournal)
	for run, err := range journal.List(ctx, hook.Filter{Newest: true, Limit: 50}) {
		check(err)
		fmt.Println(run.Phase, run.Subscription, run.State, run.Class)
	}
	// docs:end list

	// Output:
	// tool.post audit failed hook.timeout
	// tool.pre no-prod completed
}
