package belay_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
)

// A denied call is not an error: the model gets the reason, and the turn continues.
func Example_gate() {
	ctx := context.Background()
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "write", Input: `{"path": "/srv/prod/notes.md"}`}}},
		{Calls: []scripted.Call{{Tool: "write", Input: `{"path": "/srv/drafts/notes.md"}`}}},
		{Text: "The notes are in /srv/drafts, for review."},
	}, nil)
	type file struct {
		Path string `json:"path"`
	}
	write := belay.NewTool("write", "Writes a file.", func(_ context.Context, in file) (string, error) {
		return "written: " + in.Path, nil
	}, &belay.ToolTraits{Serial: true})

	// docs:begin gate
	agent := must(belay.New(model, &belay.Options{
		Tools: []belay.Tool{write},
		Hooks: []hook.Subscription{NoProd},
	}))
	turn := must(agent.Session("demo").Turn(ctx, "Publish the notes."))
	fmt.Println(turn.Reason, "-", turn.Text)

	for message, err := range agent.Session("demo").Messages(ctx) {
		check(err)
		for _, part := range message.Parts {
			if part.Result != nil {
				fmt.Printf("%q %s\n", part.Result.Class, part.Result.Text)
			}
		}
	}
	// docs:end gate

	// Output:
	// end_turn - The notes are in /srv/drafts, for review.
	// "denied" Denied by "no-prod": production is off limits in this session
	// Do not repeat this call. Reach the goal in another way, or tell the user what you need.
	// "" written: /srv/drafts/notes.md
}

// check stops an example after an error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
