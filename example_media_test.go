package belay_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// picture is the content of a PNG file.
var picture = []byte("\x89PNG\r\n\x1a\n")

// User messages and tool results can contain images and files.
func ExampleImage() {
	ctx := context.Background()
	model := scripted.New([]scripted.Step{
		{Text: "The first page.", Calls: []scripted.Call{{Tool: "screenshot", Input: `{"page": "/login"}`}}},
		{Text: "The button is gone."},
	}, nil)

	// docs:begin media
	// A tool returns images and files in Media. Text is still what the model reads first.
	screenshot := belay.NewTool("screenshot", "Takes a screenshot of a page.",
		func(_ context.Context, in struct {
			Page string `json:"page"`
		},
		) (belay.Result, error) {
			return belay.Result{Text: "screenshot of " + in.Page, Media: []belay.Media{{MIME: "image/png", Data: picture}}}, nil
		}, nil)
	agent, err := belay.New(model, &belay.Options{Tools: []belay.Tool{screenshot}})
	if err != nil {
		panic(err)
	}

	turn, err := agent.Session("demo").Turn(ctx, "Does the login page look like the design?",
		belay.Image("image/png", picture),
		belay.File("design.pdf", "application/pdf", []byte("%PDF-1.7")),
		belay.Part{Type: belay.PartMedia, Media: &belay.Media{MIME: "image/png", URL: "https://example.com/old.png"}},
	)
	if err != nil {
		panic(err)
	}
	fmt.Println(turn.Text)
	// docs:end media

	for message, err := range agent.Session("demo").Messages(ctx) {
		check(err)
		for _, part := range message.Parts {
			switch {
			case part.Media != nil:
				fmt.Printf("%s %s %q\n", message.Kind, part.Media.MIME, part.Media.Name+part.Media.URL)
			case part.Result != nil:
				fmt.Println(message.Kind, part.Result.Media[0].MIME)
			}
		}
	}

	// Output:
	// The button is gone.
	// user image/png ""
	// user application/pdf "design.pdf"
	// user image/png "https://example.com/old.png"
	// results image/png
}
