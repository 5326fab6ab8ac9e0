package belay_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// A directive is a name that users type after a slash. It can rewrite the message, answer
// instead of the model, or act on the turn.
func ExampleAgent_Define() {
	// docs:begin directive
	ctx := context.Background()
	model := scripted.New([]scripted.Step{{Text: "Done."}}, nil)
	agent := must(belay.New(model, nil))

	lease := must(agent.Define(belay.Directive{
		Name: "loud", Description: "say it louder",
		Run: func(_ context.Context, use *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
			if use.Rest == "" {
				return belay.DirectiveOutcome{Reply: &belay.Reply{Text: "What shall I say louder?"}}, nil
			}
			louder := strings.ToUpper(use.Rest)
			return belay.DirectiveOutcome{Text: &louder}, nil
		},
	}))
	// docs:end directive

	session := agent.Session("demo")
	fmt.Println(must(session.Turn(ctx, "/loud")).Text) // Belay does not call the model
	fmt.Println(must(session.Turn(ctx, "/loud tidy the changelog")).Text)
	for message := range session.Messages(ctx) {
		fmt.Printf("%s: %s\n", message.Role, message.Text())
	}
	_ = lease.Close() // from the next message on, /loud is plain text
	fmt.Println(len(agent.Directives()))
	// Output:
	// What shall I say louder?
	// Done.
	// user: [invoked_extension__hook_loud]
	// assistant: What shall I say louder?
	// user: TIDY THE CHANGELOG
	// assistant: Done.
	// 0
}
