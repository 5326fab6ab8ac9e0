package belay_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/hook/hooktest"
)

// docs:begin first-hook

// NoProd keeps an agent out of production.
var NoProd = belay.ToolPre.On("no-prod", noProd, &hook.Options{
	Match: hook.Match{Tools: []string{"write", "edit"}},
})

// project is what relative paths are relative to.
const project = "/srv/app"

func noProd(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
	var in struct{ Path string }
	if err := call.Decode(&in); err != nil {
		return belay.Pass, err // tool.pre is a gate: an error denies
	}
	if in.Path == "" {
		return belay.Pass, errors.New("the path is missing")
	}
	if !path.IsAbs(in.Path) {
		in.Path = path.Join(project, in.Path)
	}
	if strings.HasPrefix(path.Clean(in.Path)+"/", "/srv/prod/") {
		return belay.Deny("production is off limits in this session"), nil
	}
	return belay.Pass, nil
}

// docs:end first-hook

// A hook is a function that is called at a phase.
func Example() {
	ctx := context.Background()
	// docs:begin first-run
	runtime := must(hook.NewRuntime(belay.Phases(), nil))
	must(runtime.Install(NoProd))

	turn := runtime.Snapshot() // what a turn works on
	defer func() { _ = turn.Release(ctx) }()
	for _, call := range []string{
		`{"id": "1", "tool": "write", "input": {"path": "notes.md"}}`,
		`{"id": "2", "tool": "write", "input": {"path": "../prod/db.yaml"}}`,
		`{"id": "3", "tool": "write", "input": {"file_path": "/srv/prod/db.yaml"}}`,
		`{"id": "4", "tool": "read", "input": {"path": "/srv/prod/db.yaml"}}`,
	} {
		in := must(belay.ToolPre.DecodeInput(hook.Scope{Session: "demo"}, []byte(call)))
		outcome := must(belay.ToolPre.Dispatch(ctx, turn, in))
		fmt.Println(in.ID(), in.Tool(), "->", cmp.Or(outcome.Output.Reason, "go ahead"))
	}
	// docs:end first-run

	// Output:
	// 1 write -> go ahead
	// 2 write -> production is off limits in this session
	// 3 write -> no-prod could not decide: the path is missing
	// 4 read -> go ahead
}

// docs:begin first-test

func TestNoProd(t *testing.T) {
	t.Parallel()
	call := hooktest.Input(t, belay.ToolPre, `{"tool": "write", "input": {"path": "/srv/prod/db.yaml"}}`)
	trial := hooktest.Try(t, belay.ToolPre, NoProd, call, nil)
	trial.Denied("production is off limits")
	trial.State(hook.Completed)

	draft := hooktest.Input(t, belay.ToolPre, `{"tool": "write", "input": {"path": "drafts/notes.md"}}`)
	hooktest.Try(t, belay.ToolPre, NoProd, draft, nil).Passed()

	odd := hooktest.Input(t, belay.ToolPre, `{"tool": "write", "input": {"file": "/srv/prod/db.yaml"}}`)
	hooktest.Try(t, belay.ToolPre, NoProd, odd, nil).Code(codes.Error)
}

// docs:end first-test

// must stops an example after an error.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
