package host_test

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/provider/scripted"
)

// A program loads a space by its directory. The hooks, skills, agents and MCP servers of the
// space are part of every agent, and are loaded again when their files change.
func Example_space() {
	dir, remove := project(map[string]string{
		"acme/manifest.json":    `{"id": "acme"}`,
		"acme/hooks/rules.yaml": noProd,
	})
	defer remove()
	ctx := context.Background()
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "write", Input: `{"path": "prod/notes.md", "content": "hello"}`}}},
		{Text: "Production is off limits."},
	}, nil)
	// docs:begin space
	h, err := host.Open(ctx, &host.Options{Dir: dir, UserDir: filepath.Join(dir, "user"), Environ: []string{}, Model: model, Spaces: []string{filepath.Join(dir, "acme")}})
	if err != nil {
		panic(err)
	}
	defer func() { _ = h.Close() }()
	agent, err := h.Agent(ctx, host.Main) // an error lists every mistake in the space, with file and line
	if err != nil {
		panic(err)
	}
	// docs:end space
	for event, err := range agent.Session("demo").Run(ctx, "Publish the notes.") {
		if err != nil {
			panic(err)
		}
		if event.Result != nil {
			fmt.Println(event.Call.Tool, event.Result.Class)
		}
		fmt.Print(event.Text)
	}
	// Output:
	// write denied
	// Production is off limits.
}
