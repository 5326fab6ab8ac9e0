package belay_test

import (
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/storetest"
)

func TestAnAgentWithoutAStoreHasASoundOne(t *testing.T) {
	t.Parallel()
	storetest.Test(t, func(testing.TB) belay.Store { return belay.NewTransientStore() }, nil)
}
