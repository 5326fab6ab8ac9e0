package storetest_test

import (
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/store/storetest"
)

// If you implement a store, test it with the suite. This is all the code that you need,
// here for the reference implementation. Each rule is a subtest. The example is a test,
// because a suite needs a *testing.T.
func TestMemstore(t *testing.T) {
	t.Parallel()
	storetest.Test(t, func(testing.TB) belay.Store { return memstore.New(nil) }, &storetest.Options{
		Expire: func(_ testing.TB, s belay.Store, session string) { s.(*memstore.Store).Expire(session) },
	})
}
