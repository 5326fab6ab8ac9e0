package hook_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay/hook"
)

// Install returns a lease. Closing the lease never waits and does not affect a running
// turn, because the turn keeps its snapshot.
func Example_lease() {
	ctx := context.Background()
	runtime, err := hook.NewRuntime([]hook.AnyPhase{beforeUpload}, nil)
	check(err)
	// docs:begin lease
	lease, err := runtime.Install(beforeUpload.On("size", passes, nil))
	check(err)
	other, err := runtime.Install(beforeUpload.On("quota", passes, &hook.Options{After: []string{"size"}}))
	check(err)
	fmt.Println(lease.Close()) // Somebody needs it.

	turn := runtime.Snapshot()
	check(hook.CloseAll(lease, other)) // They can be removed together.
	fmt.Println("this turn:", beforeUpload.Active(turn), "the next:", beforeUpload.Active(runtime.Snapshot()))

	check(turn.Release(ctx))
	check(lease.Drain(ctx)) // It is not used any more.
	// docs:end lease

	// Output:
	// close: subscription "size" on upload.before cannot be removed alone, because it is a dependency of quota: close the leases together with CloseAll
	// this turn: true the next: false
}
