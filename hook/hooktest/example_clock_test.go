package hooktest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/hook/hooktest"
)

// A test of a timeout of one minute, without waiting.
func ExampleClock() {
	var t printer // in a test: the *testing.T

	clock := hooktest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	scan := upload.On("scan", hooktest.Hangs[file, verdict](), &hook.Options{
		Execution: hook.Deadline,
		Timeout:   time.Minute,
	})
	trial := hooktest.Try(t, upload, scan, file{name: "large.iso"}, &hooktest.Options{
		Runtime: hook.RuntimeOptions{Clock: clock},
		During: func(context.CancelCauseFunc) {
			clock.WaitTimers(t, 1) // the dispatch now waits for the clock
			clock.Advance(time.Minute)
		},
	})
	trial.Code(codes.Timeout)
	trial.Denied("no answer within 1m0s")
	fmt.Println(trial.Runs[0].State, "after", trial.Runs[0].Latency)
	// Output:
	// timed_out after 1m0s
}
