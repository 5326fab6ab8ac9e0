package riverjobs_test

import (
	"testing"

	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/internal/riverjobs"
)

// SPEC J-03, J-07
func TestQueue(t *testing.T) {
	t.Parallel()
	hooktest.TestQueue(t, func(t testing.TB, capacity int) hooktest.Store {
		db := newDatabase(t)
		return hooktest.Store{Journal: db, Queue: newQueue(t, db, &riverjobs.Options{Capacity: capacity})}
	})
}

// SPEC J-05
func TestWorkQueue(t *testing.T) {
	t.Parallel()
	hooktest.TestWorkQueue(t, func(t testing.TB, capacity, workers int) hooktest.Store {
		db := newDatabase(t)
		return hooktest.Store{Journal: db, Queue: newQueue(t, db, &riverjobs.Options{Capacity: capacity, Workers: workers})}
	})
}

// SPEC J-02
func TestSecrets(t *testing.T) {
	t.Parallel()
	hooktest.TestSecrets(t, func(t testing.TB) hooktest.Store {
		db := newDatabase(t)
		return hooktest.Store{Journal: db, Queue: newQueue(t, db, nil), Dump: db.dump}
	})
}
