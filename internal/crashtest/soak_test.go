//go:build soak

package crashtest_test

import (
	"testing"

	"github.com/belay-run/belay/internal/crashtest"
)

// In this test, the process that resumes is killed too.
//
// SPEC L-01, J-03, J-04, J-05
func TestSoakSQLiteTwice(t *testing.T) {
	t.Parallel()
	crashtest.Run(t, open, true)
}
