package openai

import (
	"net/url"
	"strings"

	"charm.land/catwalk/pkg/catwalk"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// describe returns what is known about a model: from the options, or else from the
// built-in table.
func describe(provider string, base *url.URL, model string, o *Options) belay.ModelInfo {
	return wire.Info(provider+"/"+model, lookUp(provider, base, model), priceOf, o.Window, o.Price)
}

// priceOf reads the prices of the table. Its two columns for cached tokens are filled in
// different ways, so a price below that of an input token is for reading the cache, and a
// price above it for writing. Cached tokens without a price cost as much as input tokens,
// since the usage does not count them there.
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

// reasons reports whether a model thinks. A model of OpenAI that is not in the table probably
// does, as all new ones do.
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

// Known returns the names of a provider's models in the built-in table; [Model.Info] returns
// the window and the price of each. [New] also accepts names that are not in the table. The
// list is empty for a provider that the table does not have.
func Known(provider string) []string { return wire.CatalogOf(provider).Names() }

// lookUp finds a model in the built-in table: by its provider or else by the host that
// serves it, and by its name or else by its name without a date. It returns nil if the
// table does not have it.
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

// undated removes the date, or the word latest, from the end of a model's name.
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
