package crashtest_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/belay-run/belay/internal/crashtest"
	"github.com/belay-run/belay/store/sqlite"
)

func open(ctx context.Context, dir string) (crashtest.Store, error) {
	return sqlite.Open(ctx, filepath.Join(dir, "belay.db"), nil)
}

func TestMain(m *testing.M) {
	crashtest.Child(open)
	m.Run()
}

// A process may end at any point, and nothing is lost or done twice.
//
// SPEC L-01, J-03, J-04, J-05, P-08
func TestSQLite(t *testing.T) {
	t.Parallel()
	crashtest.Run(t, open, false)
}

// A process may be killed while a person is asked. The question stays pending, other
// processes decide, and others continue the turn.
//
// SPEC P-08, P-09, P-10
func TestSQLiteApprovals(t *testing.T) {
	t.Parallel()
	crashtest.RunApprovals(t, open)
}
