package toolbox_test

import (
	"context"
	"fmt"
	"os"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/toolbox"
)

// The agent starts a server in the background, and the program lists and stops it.
func ExampleBackground() {
	dir, err := os.MkdirTemp("", "background")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		panic(err)
	}
	defer func() { _ = root.Close() }()
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "shell", Input: `{"command": "echo listening; exec sleep 3600", "background": true}`}}},
		{Text: "The server runs."},
	}, nil)
	ctx := context.Background()

	// docs:begin background
	background := toolbox.NewBackground(nil)
	agent, err := belay.New(model, &belay.Options{
		Authorizer: permit.Off(),
		Extensions: []belay.Extension{toolbox.New(root, &toolbox.Options{Background: background}), background},
	})
	if err != nil {
		panic(err)
	}
	defer func() { _ = agent.Close(ctx) }() // also stops the commands
	if _, err := agent.Session("demo").Turn(ctx, "Start the server."); err != nil {
		panic(err)
	}
	for _, command := range background.List("demo") {
		fmt.Println(command.ID, command.Running, command.Command)
		if err := background.Stop(ctx, "demo", command.ID); err != nil {
			panic(err)
		}
	}
	output, err := background.Output("demo", "bg_1")
	if err != nil {
		panic(err)
	}
	fmt.Print(output)
	// docs:end background

	// Output:
	// bg_1 true echo listening; exec sleep 3600
	// listening
}
