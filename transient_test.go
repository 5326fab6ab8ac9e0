package belay_test

import (
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/storetest"
)

// SPEC L-02: a hold, and what it fences off.
func TestAnAgentWithoutAStoreHasASoundOne(t *testing.T) {
	t.Parallel()
	storetest.Test(t, func(testing.TB) belay.Store { return belay.NewTransientStore() }, nil)
}
