package anthropic

import (
	"strings"
	"sync"

	"charm.land/catwalk/pkg/catwalk"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// describe returns what is known about a model: from the options, or else from the
// built-in table.
func describe(model string, o *Options) belay.ModelInfo {
	return wire.Info(provider+"/"+model, lookUp(model), priceOf, o.Window, o.Price)
}

// priceOf reads the prices of the table, which calls writing to the cache "in cached" and
// reading from it "out cached".
func priceOf(listed *catwalk.Model) belay.Price {
	return belay.Price{
		In: listed.CostPer1MIn, Out: listed.CostPer1MOut,
		CacheWrite: listed.CostPer1MInCached, CacheRead: listed.CostPer1MOutCached,
	}
}

// Known returns the names of the models in the built-in table; [Model.Info] returns the
// window and the price of each. [New] also accepts names that are not in the table.
func Known() []string { return wire.CatalogOf(provider).Names() }

// models are the models of the table by name. A name without a date is an alias of the
// newest model of that name.
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

// lookUp finds a model by its name, or by its name without a date. It returns nil if the
// table has neither.
func lookUp(model string) *catwalk.Model {
	if m := models()[model]; m != nil {
		return m
	}
	return models()[undated(model)]
}

// undated removes the date, or the word latest, from the end of a model's name.
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
