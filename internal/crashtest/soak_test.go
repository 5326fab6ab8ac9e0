//go:build soak

package crashtest_test

import (
	"testing"

	"github.com/belay-run/belay/internal/crashtest"
)

// Like TestSQLite, but the test also kills the process that resumes the turn.
//
// SPEC L-01, J-03, J-04, J-05
func TestSoakSQLiteTwice(t *testing.T) {
	t.Parallel()
	crashtest.Run(t, open, true)
}
