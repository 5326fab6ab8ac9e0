package hook_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay/hook"
)

// A shadow runs and is recorded with what it would have done. It changes
// nothing, so that a new rule can be watched before it is trusted.
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
