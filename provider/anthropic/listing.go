package anthropic

import (
	"strings"
	"sync"

	"charm.land/catwalk/pkg/catwalk"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// describe returns the ModelInfo of a model. Options override the built-in table.
func describe(model string, o *Options) belay.ModelInfo {
	return wire.Info(provider+"/"+model, lookUp(model), priceOf, o.Window, o.Price)
}

// priceOf returns the prices of a table entry. The table calls the price of cache writes "in
// cached" and the price of cache reads "out cached".
func priceOf(listed *catwalk.Model) belay.Price {
	return belay.Price{
		In: listed.CostPer1MIn, Out: listed.CostPer1MOut,
		CacheWrite: listed.CostPer1MInCached, CacheRead: listed.CostPer1MOutCached,
	}
}

// Known returns the names of the models in the built-in table. [Model.Info] returns the
// window and the price of each. [New] also accepts other names.
func Known() []string { return wire.CatalogOf(provider).Names() }

// models maps names to the models of the table. A name without a date means the newest model
// of that name.
var models = sync.OnceValue(func() map[string]*catwalk.Model {
	listed := make(map[string]*catwalk.Model)
	all := wire.CatalogOf(provider).Models
	for i := range all {
		m := &all[i]
		listed[m.ID] = m
		alias := undated(m.ID)
		if newest := listed[alias]; alias != m.ID && (newest == nil || newest.ID < m.ID) {
			listed[alias] = m
		}
	}
	return listed
})

// lookUp finds a model by its name, or else by its name without the date. It returns nil if
// the table has neither.
func lookUp(model string) *catwalk.Model {
	if m := models()[model]; m != nil {
		return m
	}
	return models()[undated(model)]
}

// undated removes the date or "latest" from the end of a model's name.
func undated(model string) string {
	i := strings.LastIndexByte(model, '-')
	if i < 0 {
		return model
	}
	suffix := model[i+1:]
	if suffix == "latest" || len(suffix) == len("20060102") && strings.Trim(suffix, "0123456789") == "" {
		return model[:i]
	}
	return model
}
