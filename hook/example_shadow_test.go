package hook_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay/hook"
)

// In shadow mode, Belay runs the handler and records its answer, but ignores it. So you can
// watch a new rule before you use it.
func Example_shadow() {
	ctx := context.Background()
	runtime, err := hook.NewRuntime([]hook.AnyPhase{beforeUpload}, nil)
	check(err)
	// docs:begin shadow
	noCats := func(context.Context, upload) (decision, error) {
		return decision{Denied: "too many cats"}, nil
	}
	_, err = runtime.Install(beforeUpload.On("no-cats", noCats, &hook.Options{Shadow: true}))
	check(err)

	turn := runtime.Snapshot()
	defer func() { _ = turn.Release(ctx) }()
	outcome, err := beforeUpload.Dispatch(ctx, turn, upload{name: "cat.png"})
	check(err)
	fmt.Printf("denied: %q\n", outcome.Output.Denied)
	for _, run := range turn.Take() {
		fmt.Println("on record:", run.Subscription, run.Severity, "shadow:", run.Shadow)
	}
	// docs:end shadow

	// Output:
	// denied: ""
	// on record: no-cats deny shadow: true
}
