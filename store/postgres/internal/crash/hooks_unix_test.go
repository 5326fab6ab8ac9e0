//go:build unix

package crash_test

import (
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/crashtest"
)

// A process can be killed inside a hook. The hook's run is stored while the hook runs, and
// becomes interrupted after the process has ended. If the hook runs again, the new run has
// the next attempt number. The table of all cases is in internal/crashtest.
//
// SPEC J-01, J-04
func TestCrashHooks(t *testing.T) {
	t.Parallel()
	crashtest.RunHooks(t, open, []hook.AnyPhase{belay.ToolPre, belay.ModelPre, belay.TurnPostTurn}, false)
}
