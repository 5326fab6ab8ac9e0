//go:build unix

package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/storetest"
)

// SPEC V-03
func TestBus(t *testing.T) {
	t.Parallel()
	storetest.TestBus(t, func(t testing.TB) (one, other belay.BusStore) {
		path := filepath.Join(t.TempDir(), "belay.db")
		return openFile(t, path, nil), openFile(t, path, nil)
	})
}
