//go:build unix

package declare_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
)

// This example declares a gate in a file and installs it like a gate in Go.
func Example() {
	dir, err := os.MkdirTemp("", "belay-example-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "hooks.yaml")
	if err := os.WriteFile(file, []byte(`hooks:
  - id: no-prod
    phase: tool.pre
    match: { tools: [write, edit], when: 'args.path.startsWith("/srv/prod")' }
    run: echo "production is off limits" >&2; exit 2
`), 0o600); err != nil {
		panic(err)
	}
	ctx := context.Background()
	runtime, err := hook.NewRuntime(belay.Phases(), nil)
	if err != nil {
		panic(err)
	}

	// docs:begin declare
	declared, err := declare.Load(dir, file)
	if err != nil {
		panic(err) // every mistake, with file and line
	}
	set, err := declare.New(declared, hook.Origin{Kind: hook.OriginOperator}, nil)
	if err != nil {
		panic(err)
	}
	lease, err := runtime.Install(set.Subscriptions()...)
	if err != nil {
		panic(err)
	}
	// docs:end declare

	call, err := belay.ToolPre.DecodeInput(hook.Scope{}, []byte(`{"id": "1", "tool": "write", "input": {"path": "/srv/prod/notes.md"}}`))
	if err != nil {
		panic(err)
	}
	snapshot := runtime.Snapshot()
	outcome, err := belay.ToolPre.Dispatch(ctx, snapshot, call)
	if err != nil {
		panic(err)
	}
	fmt.Println(outcome.Output.Decision, "by", outcome.By+":", outcome.Output.Reason)
	if err := snapshot.Release(ctx); err != nil {
		panic(err)
	}

	// docs:begin unload
	if err := lease.Drain(ctx); err != nil { // waits for the turns that hold them
		panic(err)
	}
	if err := set.Close(); err != nil { // ends the workers
		panic(err)
	}
	// docs:end unload

	// Output: deny by no-prod: production is off limits
}
