package postgres_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/postgres"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// A conversation begins on one machine and continues on another.
func Example() {
	ctx := context.Background()
	dsn, err := server.Create(ctx, "example", template)
	check(err)
	model := scripted.New([]scripted.Step{{Text: "Noted."}, {Text: "You are Ann."}}, nil)

	// docs:begin open
	talk := func(text string) {
		store, err := postgres.Open(ctx, dsn, nil)
		check(err)
		defer func() { check(store.Close()) }()

		agent, err := belay.New(model, &belay.Options{Store: store})
		check(err)
		defer func() { check(agent.Close(ctx)) }()

		turn, err := agent.Session("demo").Turn(ctx, text)
		check(err)
		fmt.Println(turn.Text)
	}
	talk("My name is Ann.") // here
	talk("Who am I?")       // or on another machine
	// docs:end open

	// Output:
	// Noted.
	// You are Ann.
}
