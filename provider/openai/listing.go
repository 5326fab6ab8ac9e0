package openai

import (
	"net/url"
	"strings"

	"charm.land/catwalk/pkg/catwalk"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// describe returns the ModelInfo of a model. Options override the built-in table.
func describe(provider string, base *url.URL, model string, o *Options) belay.ModelInfo {
	return wire.Info(provider+"/"+model, lookUp(provider, base, model), priceOf, o.Window, o.Price)
}

// priceOf returns the prices of a table entry. The two columns for cached tokens do not have
// the same meaning in all entries. So a price above the input price is for cache writes, and
// any other price is for cache reads. If both columns are empty, cached tokens cost as much
// as input tokens.
func priceOf(listed *catwalk.Model) belay.Price {
	p := belay.Price{In: listed.CostPer1MIn, Out: listed.CostPer1MOut, CacheRead: listed.CostPer1MIn, CacheWrite: listed.CostPer1MIn}
	for _, cached := range []float64{listed.CostPer1MInCached, listed.CostPer1MOutCached} {
		switch {
		case cached <= 0:
		case cached > p.In:
			p.CacheWrite = cached
		default:
			p.CacheRead = min(p.CacheRead, cached)
		}
	}
	return p
}

// reasons reports whether a model thinks. An OpenAI model that is not in the table is
// probably new, and all new models think.
func reasons(provider string, base *url.URL, model string) bool {
	if listed := lookUp(provider, base, model); listed != nil {
		return listed.CanReason
	}
	for _, old := range []string{"gpt-3.5", "gpt-4", "chatgpt-"} {
		if strings.HasPrefix(model, old) {
			return false
		}
	}
	return provider == official
}

// Known returns the names of a provider's models in the built-in table. [Model.Info] returns
// the window and the price of each. [New] also accepts other names. The list is empty if the
// table does not have the provider.
func Known(provider string) []string { return wire.CatalogOf(provider).Names() }

// lookUp finds a model in the built-in table, or returns nil. It looks for the provider by
// name and then by the host of its API. It looks for the model by name and then by name
// without date.
func lookUp(provider string, base *url.URL, model string) *catwalk.Model {
	catalog := wire.CatalogOf(provider)
	if catalog == nil {
		catalog = wire.CatalogAt(base.Host)
	}
	if m := catalog.Find(model); m != nil {
		return m
	}
	return catalog.Find(undated(model))
}

// undated removes the date or "latest" from the end of a model's name.
func undated(model string) string {
	for _, form := range []string{"-0000-00-00", "-latest"} {
		at := len(model) - len(form)
		if at <= 0 {
			continue
		}
		digits := strings.Map(func(r rune) rune {
			if r >= '1' && r <= '9' {
				return '0'
			}
			return r
		}, model[at:])
		if digits == form {
			return model[:at]
		}
	}
	return model
}
