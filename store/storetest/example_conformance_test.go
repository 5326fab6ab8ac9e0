package storetest_test

import (
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/store/storetest"
)

// Whoever implements a store holds it against the suite, which names each rule
// as a subtest. This is all it takes, here for the reference. Suites need a
// *testing.T, so that their example is a test.
func TestMemstore(t *testing.T) {
	t.Parallel()
	storetest.Test(t, func(testing.TB) belay.Store { return memstore.New(nil) }, &storetest.Options{
		Expire: func(_ testing.TB, s belay.Store, session string) { s.(*memstore.Store).Expire(session) },
	})
}
