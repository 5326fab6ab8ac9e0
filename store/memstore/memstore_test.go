package memstore_test

import (
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/store/storetest"
)

// SPEC J-03: jobs and records are stored together with the transcript.
// SPEC L-13
func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Test(t, func(testing.TB) belay.Store { return memstore.New(&memstore.Options{MaxJobs: 8}) }, &storetest.Options{
		Expire: func(_ testing.TB, s belay.Store, session string) { s.(*memstore.Store).Expire(session) },
	})
}

// SPEC J-01
func TestJournal(t *testing.T) {
	t.Parallel()
	hooktest.TestJournal(t, func(testing.TB) hook.Journal { return memstore.New(nil).Journal() })
}

// SPEC J-07
func TestQueue(t *testing.T) {
	t.Parallel()
	hooktest.TestQueue(t, func(_ testing.TB, capacity int) hooktest.Store {
		s := memstore.New(&memstore.Options{MaxJobs: capacity})
		return hooktest.Store{Journal: s.Journal(), Queue: s.Queue()}
	})
}
