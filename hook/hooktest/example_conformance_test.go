package hooktest_test

import (
	"testing"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/hooktest"
)

// If you implement a journal or a queue, check it with the suites. Each rule is a subtest.
// These tests are complete: they check the implementations in memory. Suites need a
// *testing.T, so their example is a test.

// SPEC J-01
func TestMemoryJournal(t *testing.T) {
	t.Parallel()
	// docs:begin journal-suite
	hooktest.TestJournal(t, func(testing.TB) hook.Journal { return hook.NewMemoryJournal(4096) })
	// docs:end journal-suite
}

// SPEC J-07
func TestMemoryQueue(t *testing.T) {
	t.Parallel()
	hooktest.TestQueue(t, openMemory)
}

// SPEC J-02
func TestMemorySecrets(t *testing.T) {
	t.Parallel()
	var journal *hook.MemoryJournal
	hooktest.TestSecrets(t, func(t testing.TB) hooktest.Store {
		store := openMemory(t, 1024)
		journal = store.Journal.(*hook.MemoryJournal)
		return store
	})
	if n := journal.Dropped(); n > 0 {
		t.Errorf("%d runs were dropped before they could be searched: the journal is too small", n)
	}
}

// openMemory opens a queue in memory and the journal that the queue writes to.
func openMemory(_ testing.TB, capacity int) hooktest.Store {
	journal := hook.NewMemoryJournal(4096)
	queue := hook.NewMemoryQueue(journal, &hook.MemoryQueueOptions{Capacity: capacity})
	return hooktest.Store{Journal: journal, Queue: queue}
}
