package hook_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/belay-run/belay/hook"
)

// Explain shows which handlers were called, what each answered, which answer won, and which
// handlers were not called and why.
func Example_explain() {
	ctx := context.Background()
	runtime, err := hook.NewRuntime([]hook.AnyPhase{beforeUpload}, nil)
	check(err)
	denies := func(reason string) hook.Handler[upload, decision] {
		return func(context.Context, upload) (decision, error) { return decision{Denied: reason}, nil }
	}
	breaks := func(context.Context, upload) (decision, error) { return decision{}, errors.New("no connection") }
	// docs:begin explain
	_, err = runtime.Install(
		beforeUpload.On("size", passes, nil),
		beforeUpload.On("reputation", breaks, &hook.Options{Failure: hook.Open}),
		beforeUpload.On("no-video", denies("too long"), &hook.Options{
			Match: hook.Match{Labels: map[string][]string{"kind": {"video/*"}}},
		}),
		beforeUpload.On("quota", denies("the disk is full"), &hook.Options{After: []string{"size"}}),
		beforeUpload.On("virus-scan", passes, &hook.Options{After: []string{"quota"}}),
	)
	check(err)

	turn := runtime.Snapshot()
	defer func() { _ = turn.Release(ctx) }()
	explanation, err := beforeUpload.Explain(ctx, turn, upload{name: "cat.png", kind: "image/png"})
	check(err)
	fmt.Print(explanation)
	// docs:end explain

	// Output:
	// upload.before: quota won
	//   1.  no-video    not asked  it matches only kind in [video/*], but this input has "image/png"
	//   2.  reputation  failed     no connection (hook.error)
	//   3.  size        completed  no opinion
	//   4.  quota       completed  deny  <- won
	//   5.  virus-scan  not asked  quota had stopped the phase (hook.skipped)
}
