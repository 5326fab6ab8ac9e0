//go:build unix

package crashtest_test

import (
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/crashtest"
)

// A process may be killed while any hook runs. The journal has the hook's record, and its
// state becomes interrupted. A hook that runs again has the next attempt number.
//
// SPEC J-01, J-04
func TestSQLiteHooks(t *testing.T) {
	t.Parallel()
	crashtest.RunHooks(t, open, belay.Phases(), false)
}
