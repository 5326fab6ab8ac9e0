package belay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// docs:begin interceptor

// workspace keeps the tool read in one directory, and the directory out of what
// the model sees.
var workspace = belay.Interceptor{
	Name: "workspace",
	Tool: "read",
	Before: func(_ context.Context, call *belay.Invocation) (belay.Interception, error) {
		var in struct {
			Path string `json:"path"`
		}
		if err := call.Decode(&in); err != nil {
			return belay.Interception{}, err // an error refuses the call
		}
		in.Path = path.Join("/srv/project", path.Clean("/"+in.Path))
		input, err := json.Marshal(in)
		return belay.Interception{Input: input}, err
	},
	After: func(_ context.Context, _ *belay.Invocation, result belay.Result) (belay.Result, error) {
		result.Text = strings.ReplaceAll(result.Text, "/srv/project/", "")
		return result, nil
	},
}

// docs:end interceptor

// Interceptors are Go code around the calls of a tool. They run before all hooks, so hooks
// and the floor check the rewritten input.
func ExampleInterceptor() {
	ctx := context.Background()
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "read", Input: `{"path": "../../etc/motd"}`}}},
		{Text: "It says nothing."},
	}, nil)
	type file struct {
		Path string `json:"path"`
	}
	read := belay.NewTool("read", "Reads a file.", func(_ context.Context, in file) (string, error) {
		return in.Path + ": empty", nil
	}, nil)

	agent := must(belay.New(model, &belay.Options{
		Tools:        []belay.Tool{read},
		Interceptors: []belay.Interceptor{workspace},
	}))
	must(agent.Session("demo").Turn(ctx, "Read the message of the day."))

	// docs:begin rewritten
	for message, err := range agent.Session("demo").Messages(ctx) {
		check(err)
		for _, call := range message.Calls() {
			fmt.Printf("asked for: %s\nran with: %s, rewritten by %s\n", call.Input, call.Final, call.RewrittenBy)
		}
		for _, part := range message.Parts {
			if part.Result != nil {
				fmt.Println("result:", part.Result.Text)
			}
		}
	}
	// docs:end rewritten

	// Output:
	// asked for: {"path": "../../etc/motd"}
	// ran with: {"path":"/srv/project/etc/motd"}, rewritten by [workspace]
	// result: etc/motd: empty
}
