//go:build unix

package crash_test

import (
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/crashtest"
)

// A process may be killed inside of a hook. The record of the hook is there while it
// lives, becomes interrupted when it is gone, and a hook that runs again has the next
// attempt number. The whole table is in internal/crashtest.
//
// SPEC J-01, J-04
func TestCrashHooks(t *testing.T) {
	t.Parallel()
	crashtest.RunHooks(t, open, []hook.AnyPhase{belay.ToolPre, belay.ModelPre, belay.TurnPostTurn}, false)
}
