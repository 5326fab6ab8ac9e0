package belay_test

import (
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/storetest"
)

// SPEC L-02: the store of an agent without Options.Store passes the same tests as every
// other store.
func TestAnAgentWithoutAStoreHasASoundOne(t *testing.T) {
	t.Parallel()
	storetest.Test(t, func(testing.TB) belay.Store { return belay.NewTransientStore() }, nil)
}
