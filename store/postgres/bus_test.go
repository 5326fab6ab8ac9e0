package postgres_test

import (
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/storetest"
)

// SPEC V-03
func TestBus(t *testing.T) {
	t.Parallel()
	storetest.TestBus(t, func(t testing.TB) (one, other belay.BusStore) {
		dsn := server.Database(t, template)
		return openDSN(t, dsn, nil), openDSN(t, dsn, nil)
	})
}
