package belay_test

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// docs:begin first-hook

// NoProd keeps an agent out of production.
var NoProd = belay.ToolPre.On("no-prod", noProd, &hook.Options{
	Match: hook.Match{Tools: []string{"write", "edit"}},
})

func noProd(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
	var in struct{ Path string }
	if err := call.Decode(&in); err != nil {
		return belay.Pass, err // tool.pre is a gate: an error denies
	}
	if strings.HasPrefix(path.Clean(in.Path), "/srv/prod/") {
		return belay.Deny("production is off limits in this session"), nil
	}
	return belay.Pass, nil
}

// docs:end first-hook

// A hook is a function on a phase. Install it, and it is asked.
func Example() {
	runtime := must(hook.NewRuntime(belay.Phases(), nil))
	must(runtime.Install(NoProd))

	snapshot := runtime.Snapshot() // what a turn works on
	for _, call := range []string{
		`{"id": "1", "tool": "write", "input": {"path": "/srv/app/notes.md"}}`,
		`{"id": "2", "tool": "write", "input": {"path": "/srv/app/../prod/db.yaml"}}`,
		`{"id": "3", "tool": "read", "input": {"path": "/srv/prod/db.yaml"}}`,
	} {
		in := must(belay.ToolPre.DecodeInput(hook.Scope{Session: "demo"}, []byte(call)))
		outcome := must(belay.ToolPre.Dispatch(context.Background(), snapshot, in))
		fmt.Println(in.ID(), in.Tool(), "->", cmp.Or(outcome.Output.Reason, "go ahead"))
	}
	// Output:
	// 1 write -> go ahead
	// 2 write -> production is off limits in this session
	// 3 read -> go ahead
}

// must stops an example that cannot go on.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
