package belay_test

import (
	"context"
	"encoding/json"
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

// A directive can run a tool through the same checks as the model, and add to the prompt of
// its turn.
func ExampleControls_RunTool() {
	ctx := context.Background()
	model := scripted.New([]scripted.Step{{Text: "Water it on Sunday."}}, nil)
	agent := must(belay.New(model, &belay.Options{Tools: []belay.Tool{searchNotes}}))

	// docs:begin runtool
	must(agent.Define(belay.Directive{
		Name: "notes", Description: "answer from the notes",
		Run: func(_ context.Context, use *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
			input, err := json.Marshal(map[string]string{"query": use.Rest})
			if err != nil {
				return belay.DirectiveOutcome{}, err
			}
			found, err := use.Controls.RunTool("search_notes", input)
			if err != nil {
				return belay.DirectiveOutcome{}, err
			}
			if found.IsError { // denied, invalid, or failed
				return belay.DirectiveOutcome{Reply: &belay.Reply{Text: found.Text}}, nil
			}
			if err := use.Controls.Append(belay.Text("From the notes: " + found.Text)); err != nil {
				return belay.DirectiveOutcome{}, err
			}
			err = use.Controls.AddSection(belay.PromptSection{ID: "notes", Body: "Answer only from the notes."})
			return belay.DirectiveOutcome{}, err
		},
	}))
	// docs:end runtool

	session := agent.Session("demo")
	fmt.Println(must(session.Turn(ctx, "/notes fern")).Text)
	fmt.Println(model.Requests()[0].System)
	for message := range session.Messages(ctx) {
		fmt.Printf("%s: %s\n", message.Kind, message.Text())
	}
	// Output:
	// Water it on Sunday.
	// Answer only from the notes.
	// injected: From the notes: ["water the fern"]
	// user: [invoked_extension__hook_notes] fern
	// assistant: Water it on Sunday.
}
