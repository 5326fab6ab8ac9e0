package anthropic_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
)

// An agent that uses Claude. The example needs an API key, so tests compile it but do not
// run it.
func Example_agent() { //nolint:testableexamples // it needs a key
	ctx := context.Background()
	// docs:begin agent
	model := anthropic.New("claude-sonnet-4-5", nil) // the key is in ANTHROPIC_API_KEY
	agent, err := belay.New(model, nil)
	if err != nil {
		panic(err)
	}
	turn, err := agent.Session("demo").Turn(ctx, "Say hello.")
	if err != nil {
		panic(err)
	}
	fmt.Println(turn.Text, turn.Usage.Cost)
	// docs:end agent
}
