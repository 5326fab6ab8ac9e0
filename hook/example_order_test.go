package hook_test

import (
	"fmt"

	"github.com/belay-run/belay/hook"
)

// The order of handlers does not depend on the order of registration.
func Example_order() {
	runtime, err := hook.NewRuntime([]hook.AnyPhase{beforeUpload}, nil)
	check(err)
	// docs:begin order
	_, err = runtime.Install(
		beforeUpload.On("quota", passes, &hook.Options{Priority: 10}),
		beforeUpload.On("virus-scan", passes, &hook.Options{After: []string{"size"}, Concurrent: true}),
		beforeUpload.On("size", passes, nil),
		beforeUpload.On("audit", passes, &hook.Options{Before: []string{"size"}, Priority: 99}),
	)
	check(err)

	plan, err := runtime.Plan("upload.before")
	check(err)
	fmt.Print(plan)
	// docs:end order

	// docs:begin cycle
	_, err = runtime.Install(
		beforeUpload.On("first", passes, &hook.Options{After: []string{"last"}}),
		beforeUpload.On("last", passes, &hook.Options{After: []string{"first"}}),
	)
	fmt.Println(err)
	// docs:end cycle

	// Output:
	// upload.before (gate): 4 subscriptions in 2 stages
	//   1.  quota       stage 1  inline       closed  everything  priority 10, then id
	//   2.  audit       stage 1  inline       closed  everything  priority 99, then id
	//   3.  size        stage 1  inline       closed  everything  after audit; priority 0, then id
	//   4.  virus-scan  stage 2  overlapping  closed  everything  after size; priority 0, then id
	// install: cycle on upload.before: first -> last -> first (each must run before the next): remove one of these dependencies
}
