package hook_test

import (
	"context"
	"fmt"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// If a handler with a deadline does not answer in time, the runtime abandons it. The
// failure mode of the subscription decides what happens then: by default, a gate denies.
func Example_deadline() {
	ctx := context.Background()
	runtime, err := hook.NewRuntime([]hook.AnyPhase{beforeUpload}, nil)
	check(err)
	// docs:begin deadline
	stuck := func(ctx context.Context, _ upload) (decision, error) {
		<-ctx.Done() // context.Cause(ctx) says why
		return decision{}, context.Cause(ctx)
	}
	lease, err := runtime.Install(beforeUpload.On("scan", stuck, &hook.Options{
		Execution: hook.Deadline, Timeout: time.Millisecond,
	}))
	check(err)
	try(ctx, runtime)

	_, err = lease.Replace(beforeUpload.On("scan", stuck, &hook.Options{
		Execution: hook.Deadline, Timeout: time.Millisecond,
		Failure: beforeUpload.Fallback(decision{Denied: "come back later"}),
	}))
	check(err)
	try(ctx, runtime)
	// docs:end deadline

	// Output:
	// "scan could not decide: no answer within 1ms" [hook.timeout]
	// "come back later" [hook.timeout]
}

// try dispatches one upload and prints the result.
func try(ctx context.Context, runtime *hook.Runtime) {
	turn := runtime.Snapshot()
	defer func() { _ = turn.Release(ctx) }()
	outcome, err := beforeUpload.Dispatch(ctx, turn, upload{name: "cat.png"})
	check(err)
	codes := []codes.Code{}
	for _, d := range outcome.Diagnostics {
		codes = append(codes, d.Code)
	}
	fmt.Printf("%q %v\n", outcome.Output.Denied, codes)
}
