package belay_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// Add an extension to a running agent, and remove it again.
func ExampleAgent_Add() {
	ctx := context.Background()
	agent, err := belay.New(scripted.New(nil, nil), nil)
	check(err)
	defer func() { _ = agent.Close(ctx) }()

	// docs:begin add
	lease, err := agent.Add(ctx, House{Rules: []string{"no shoes"}})
	if err != nil {
		panic(err) // nothing was added
	}
	turn, err := agent.Session("demo").Turn(ctx, "/rules")
	if err != nil {
		panic(err)
	}
	fmt.Println(turn.Text)

	if err := lease.Close(); err != nil { // the tool, the hook, the directive and the prompt are gone
		panic(err)
	}
	// docs:end add
	fmt.Println(len(agent.Directives()), "directives")

	// Output:
	// no shoes
	// 0 directives
}
