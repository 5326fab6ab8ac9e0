package gemini

import (
	"strings"

	"charm.land/catwalk/pkg/catwalk"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// describe returns the ModelInfo of a model. Options override the built-in table.
func describe(model string, o *Options) belay.ModelInfo {
	listed := wire.CatalogOf(provider).Find(strings.TrimPrefix(model, "models/"))
	return wire.Info(provider+"/"+model, listed, priceOf, o.Window, o.Price)
}

// priceOf returns the prices of a table entry. The table calls the price of cache reads "out
// cached". The service does not report cache writes and does not charge for them.
func priceOf(listed *catwalk.Model) belay.Price {
	return belay.Price{In: listed.CostPer1MIn, Out: listed.CostPer1MOut, CacheRead: listed.CostPer1MOutCached}
}

// Known returns the names of the models in the built-in table. [Model.Info] returns the
// window and the price of each. [New] also accepts other names.
func Known() []string { return wire.CatalogOf(provider).Names() }
