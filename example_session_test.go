package belay_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// A session is a conversation: each turn sees the earlier turns. A fork begins with a copy
// of the first messages.
func ExampleSession() {
	ctx := context.Background()
	model := scripted.New([]scripted.Step{
		{Text: "Noted: Ann."},
		{Text: "Ann.", Expect: &scripted.Expect{User: "called"}},
		{Text: "Bob."},
	}, nil)
	agent := must(belay.New(model, nil))

	// docs:begin session
	session := agent.Session("demo")
	must(session.Turn(ctx, "My name is Ann."))
	turn := must(session.Turn(ctx, "What am I called?"))
	fmt.Println(turn.Text)

	fork := must(session.Fork(ctx, "what-if", 2)) // after the first answer
	must(fork.Turn(ctx, "No, Bob."))
	for _, s := range []*belay.Session{session, fork} {
		fmt.Println(s.ID() + ":")
		for message, err := range s.Messages(ctx) {
			check(err)
			fmt.Printf("  %d %s: %s\n", message.Seq, message.Kind, message.Text())
		}
	}
	// docs:end session

	// Output:
	// Ann.
	// demo:
	//   1 user: My name is Ann.
	//   2 assistant: Noted: Ann.
	//   3 user: What am I called?
	//   4 assistant: Ann.
	// what-if:
	//   1 user: My name is Ann.
	//   2 assistant: Noted: Ann.
	//   3 user: No, Bob.
	//   4 assistant: Bob.
}

// Closing a session loses nothing: every process that uses the store can continue it.
func ExampleSession_Close() {
	ctx := context.Background()
	model := scripted.New([]scripted.Step{{Text: "Hello, Ann."}, {Text: "Welcome back."}}, nil)

	// docs:begin reopen
	opened := belay.SessionStart.On("greet", func(_ context.Context, s belay.SessionOpened) (belay.Aside, error) {
		fmt.Println(s.Source(), "with", s.Messages(), "messages")
		return belay.Aside{}, nil
	}, nil)
	store := memstore.New(nil)
	for _, text := range []string{"I am Ann.", "It is me again."} {
		agent := must(belay.New(model, &belay.Options{Store: store, Hooks: []hook.Subscription{opened}}))
		turn := must(agent.Session("ann").Turn(ctx, text))
		fmt.Println(turn.Text)
		check(agent.Close(ctx)) // releases its sessions: the next agent can open them
	}
	// docs:end reopen

	// Output:
	// new with 0 messages
	// Hello, Ann.
	// resumed with 2 messages
	// Welcome back.
}
