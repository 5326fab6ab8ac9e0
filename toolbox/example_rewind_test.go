package toolbox_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/toolbox"
)

// A session goes back to an earlier message, with the files as they were.
func ExampleSnapshots_Rewind() {
	dir, err := os.MkdirTemp("", "rewind")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		panic(err)
	}
	defer func() { _ = root.Close() }()
	kept, err := os.MkdirTemp("", "kept")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(kept) }()
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "write", Input: `{"path": "plan.md", "content": "tea\n"}`}}},
		{Text: "The plan is tea."},
		{Calls: []scripted.Call{{Tool: "edit", Input: `{"path": "plan.md", "old_string": "tea", "new_string": "coffee"}`}}},
		{Text: "The plan is coffee."},
	}, nil)
	ctx := context.Background()

	// docs:begin rewind
	snapshots := toolbox.NewSnapshots(kept, nil) // kept is a directory outside the project
	defer func() { _ = snapshots.Close() }()
	store := memstore.New(nil)
	agent, err := belay.New(model, &belay.Options{
		Store: store, Authorizer: permit.Off(),
		Extensions: []belay.Extension{toolbox.New(root, &toolbox.Options{Snapshots: snapshots})},
	})
	if err != nil {
		panic(err)
	}
	for _, task := range []string{"Plan the break.", "No, coffee."} {
		if _, err := agent.Session("demo").Turn(ctx, task); err != nil {
			panic(err)
		}
	}

	plan, err := snapshots.Plan(ctx, store, "demo", 4) // messages 1 to 4 stay
	if err != nil {
		panic(err)
	}
	for _, file := range plan.Files {
		fmt.Print(file.Action, " ", file.Name, "\n", file.Diff)
	}
	session, err := snapshots.Rewind(ctx, agent, plan, &toolbox.RewindOptions{As: "demo-2"})
	if err != nil {
		panic(err)
	}
	// docs:end rewind
	content, err := os.ReadFile(filepath.Join(dir, "plan.md"))
	if err != nil {
		panic(err)
	}
	fmt.Print(session.ID(), ": ", string(content))

	// Output:
	// restore plan.md
	// --- a/plan.md
	// +++ b/plan.md
	// @@ -1 +1 @@
	// -coffee
	// +tea
	// demo-2: tea
}
