package storetest_test

import (
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/store/storetest"
)

// If you implement a store, test it with the suite, which names each rule as a
// subtest. This is all the code, here for the reference implementation. Suites
// need a *testing.T, so their example is a test.
func TestMemstore(t *testing.T) {
	t.Parallel()
	storetest.Test(t, func(testing.TB) belay.Store { return memstore.New(nil) }, &storetest.Options{
		Expire: func(_ testing.TB, s belay.Store, session string) { s.(*memstore.Store).Expire(session) },
	})
}
