//go:build unix

package crashtest_test

import (
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/crashtest"
)

// A process may be killed inside of any hook. The hook is on record, the record becomes
// interrupted, and a hook that runs again has the next attempt number.
//
// SPEC J-01, J-04
func TestSQLiteHooks(t *testing.T) {
	t.Parallel()
	crashtest.RunHooks(t, open, belay.Phases(), false)
}
