package gemini

import (
	"strings"

	"charm.land/catwalk/pkg/catwalk"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// describe returns what is known about a model: from the options, or else from the
// built-in table.
func describe(model string, o *Options) belay.ModelInfo {
	listed := wire.CatalogOf(provider).Find(strings.TrimPrefix(model, "models/"))
	return wire.Info(provider+"/"+model, listed, priceOf, o.Window, o.Price)
}

// priceOf reads the prices of the table, which calls reading from the cache "out cached".
// The service does not say what it writes to the cache, and charges nothing for it.
func priceOf(listed *catwalk.Model) belay.Price {
	return belay.Price{In: listed.CostPer1MIn, Out: listed.CostPer1MOut, CacheRead: listed.CostPer1MOutCached}
}

// Known returns the names of the models in the built-in table; [Model.Info] returns the
// window and the price of each. [New] also accepts names that are not in the table.
func Known() []string { return wire.CatalogOf(provider).Names() }
