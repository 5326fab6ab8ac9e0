package mcptool_test

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/provider/scripted"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// This example makes an agent with a server from an mcp.json file.
func Example() {
	ctx := context.Background()
	file := []byte(`{"mcpServers": {"notes": {"command": "` + must(os.Executable()) + `", "env": {"` + serverVariable + `": "full"}}}}`)
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "notes__echo", Input: `{"text": "buy milk"}`}}},
		{Text: "It says: buy milk."},
	}, nil)

	// docs:begin agent
	config := must(mcptool.Parse("mcp.json", file)) // or Load, for a file that is there
	servers := must(mcptool.New(ctx, config.Servers, nil))
	agent := must(belay.New(model, &belay.Options{Extensions: []belay.Extension{servers}}))
	// docs:end agent

	turn := must(agent.Session("demo").Turn(ctx, "What do my notes say?"))
	fmt.Println(turn.Text)
	fmt.Println(agent.Close(ctx)) // no process is left
	// Output:
	// It says: buy milk.
	// <nil>
}

// This example runs a server of the official SDK in the program itself.
func ExampleServer() {
	ctx := context.Background()
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "notes__add", Input: `{"text": "buy milk"}`}}},
		{Text: "I noted it."},
	}, nil)

	// docs:begin serve
	type note struct {
		Text string `json:"text"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "notes"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "add", Description: "Adds a note."}, func(_ context.Context, _ *mcp.CallToolRequest, in note) (*mcp.CallToolResult, any, error) {
		fmt.Println("added:", in.Text)
		return nil, "added", nil
	})
	servers := must(mcptool.New(ctx, []mcptool.Server{{
		Name: "notes",
		Serve: func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
			return server.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
		},
	}}, nil))
	// docs:end serve

	agent := must(belay.New(model, &belay.Options{Extensions: []belay.Extension{servers}}))
	fmt.Println(must(agent.Session("demo").Turn(ctx, "Note that I must buy milk.")).Text)
	fmt.Println(agent.Close(ctx))
	// Output:
	// added: buy milk
	// I noted it.
	// <nil>
}

// Agents can share servers that have the same configuration.
func ExamplePool() {
	ctx := context.Background()
	server := mcptool.Server{Name: "notes", Command: must(os.Executable()), Env: map[string]string{serverVariable: "full"}}

	// docs:begin pool
	opts := &mcptool.Options{Pool: new(mcptool.Pool)}
	one := must(mcptool.New(ctx, []mcptool.Server{server}, opts))
	two := must(mcptool.New(ctx, []mcptool.Server{server}, opts)) // the same process
	// docs:end pool

	fmt.Println(one.Servers()[0].State, two.Servers()[0].State)
	fmt.Println(one.Close(ctx), two.Servers()[0].State)
	fmt.Println(two.Close(ctx)) // the process ends now
	// Output:
	// ready ready
	// <nil> ready
	// <nil>
}
