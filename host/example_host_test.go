package host_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/provider/scripted"
)

// This program has all features of the command line. The project's hook denies the same
// calls as with the command line.
func Example() {
	dir, remove := project(map[string]string{".belay/hooks/no-prod.yaml": noProd})
	defer remove()
	// docs:begin host
	ctx := context.Background()
	h, err := host.Open(ctx, &host.Options{
		Dir:     dir,
		UserDir: filepath.Join(dir, "user"), // leave it out to use your own settings
		Environ: []string{},                 // leave it out to use your own variables
		Model: scripted.New([]scripted.Step{ // leave it out to use the model that the settings name
			{Calls: []scripted.Call{{Tool: "write", Input: `{"path": "prod/notes.md", "content": "hello"}`}}},
			{Calls: []scripted.Call{{Tool: "write", Input: `{"path": "drafts/notes.md", "content": "hello"}`}}},
			{Text: "The notes are in drafts."},
		}, nil),
		Notify: func(n host.Notice) { fmt.Fprintln(os.Stderr, n) },
	})
	if err != nil {
		panic(err)
	}
	defer func() { _ = h.Close() }()
	agent, err := h.Agent(ctx, host.Main)
	if err != nil {
		panic(err)
	}
	for event, err := range agent.Session("demo").Run(ctx, "Publish the notes.") {
		if err != nil {
			panic(err)
		}
		if event.Result != nil {
			fmt.Println(event.Call.Tool, event.Result.IsError)
		}
		fmt.Print(event.Text)
	}
	// docs:end host

	// Output:
	// write true
	// write false
	// The notes are in drafts.
}

// noProd is a hook in a file.
const noProd = `hooks:
  - id: no-prod
    phase: tool.pre
    match: { tools: [write, edit], when: 'args.path.startsWith("prod/")' }
    action: deny
`

// project makes a directory with files.
func project(files map[string]string) (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "host-*")
	if err != nil {
		panic(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			panic(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			panic(err)
		}
	}
	return dir, func() { _ = os.RemoveAll(dir) }
}
