package toolbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/toolbox"
)

// An agent changes a file of a project and cannot leave the project.
func ExampleNew() {
	ctx := context.Background()
	dir := must(os.MkdirTemp("", "project"))
	defer func() { _ = os.RemoveAll(dir) }()
	check(os.WriteFile(filepath.Join(dir, "notes.md"), []byte("# Notes\n- buy milk\n"), 0o600))

	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "read", Input: `{"path": "notes.md"}`}}},
		{Calls: []scripted.Call{{Tool: "edit", Input: `{"path": "notes.md", "old_string": "buy milk", "new_string": "buy oat milk"}`}}},
		{Calls: []scripted.Call{{Tool: "read", Input: `{"path": "../../etc/passwd"}`}}},
		{Text: "Your notes say oat milk now."},
	}, nil)

	// docs:begin files
	root, err := os.OpenRoot(dir)
	if err != nil {
		panic(err)
	}
	defer func() { _ = root.Close() }()

	floor, err := permit.New(dir, nil) // checks every call
	if err != nil {
		panic(err)
	}
	agent, err := belay.New(model, &belay.Options{Extensions: []belay.Extension{toolbox.New(root, nil)}, Authorizer: floor})
	// docs:end files
	check(err)
	defer func() { _ = agent.Close(ctx) }()

	// docs:begin render
	for event, err := range agent.Session("demo").Run(ctx, "Make it oat milk.") {
		if err != nil {
			panic(err)
		}
		if event.Kind != belay.EventToolUseResult {
			continue
		}
		if event.Result.IsError {
			fmt.Println(event.Call.Tool, "->", event.Result.Class)
			continue
		}
		fmt.Println(event.Call.Tool, "->", event.Result.Text) // text for the model
		if event.Call.Tool == "edit" {
			var change toolbox.ChangeView // text for a person
			if err := json.Unmarshal(event.Result.Render, &change); err != nil {
				panic(err)
			}
			fmt.Print(change.Diff)
		}
	}
	// docs:end render

	// Output:
	// read ->      1	# Notes
	//      2	- buy milk
	//
	// edit -> notes.md was edited: 1 replacement, at line 2.
	// --- a/notes.md
	// +++ b/notes.md
	// @@ -1,2 +1,2 @@
	//  # Notes
	// -- buy milk
	// +- buy oat milk
	// read -> denied
}

// All tools, with the settings of the shell and a directory for long results.
func ExampleNew_options() {
	dir := must(os.MkdirTemp("", "project"))
	defer func() { _ = os.RemoveAll(dir) }()
	root := must(os.OpenRoot(dir))
	defer func() { _ = root.Close() }()
	spill := must(os.OpenRoot(must(os.MkdirTemp(dir, "spill"))))
	defer func() { _ = spill.Close() }()

	// docs:begin all
	tools := toolbox.New(root, &toolbox.Options{
		Extra: []*os.Root{spill}, // where belay.Options.SpillDir is, so that long results can be read
		Shell: &toolbox.ShellOptions{Keep: []string{"GITHUB_TOKEN"}},
	})
	// docs:end all
	for _, tool := range tools.Tools() {
		fmt.Println(tool.Declaration().Name)
	}
	// Output:
	// read
	// list
	// glob
	// grep
	// write
	// edit
	// shell
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
