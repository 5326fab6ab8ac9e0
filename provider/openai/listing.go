package openai

import (
	"net/url"
	"slices"
	"strings"
	"sync"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"

	"github.com/belay-run/belay"
)

// describe looks a model up and lets the options overrule what is found.
func describe(provider string, base *url.URL, model string, o *Options) belay.ModelInfo {
	info := belay.ModelInfo{Name: provider + "/" + model}
	if listed, ok := lookUp(provider, base, model); ok {
		info.Window = int(listed.ContextWindow)
		info.MaxOutput = int(listed.DefaultMaxTokens)
		info.Price = priceOf(&listed)
	}
	if o.Window > 0 {
		info.Window = o.Window
	}
	if o.Price != (belay.Price{}) {
		info.Price = o.Price
	}
	return info
}

// priceOf reads the prices of the table, which has two columns for cached tokens
// and fills them in three ways: what is cheaper than a token in is what reading
// costs, and what is dearer is what writing costs. Tokens that are written or read
// and have no price of their own cost as much as any token in, since they are not
// counted there.
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

// reasons reports whether a model thinks. One that is not listed is taken to, as
// all of OpenAI's new ones do.
func reasons(provider string, base *url.URL, model string) bool {
	if listed, ok := lookUp(provider, base, model); ok {
		return listed.CanReason
	}
	for _, old := range []string{"gpt-3.5", "gpt-4", "chatgpt-"} {
		if strings.HasPrefix(model, old) {
			return false
		}
	}
	return provider == official
}

// Known lists the names of a provider's models in the built-in table, for showing
// which there are: [Model.Info] tells the window and the price of each. Others can
// be asked too. There are none for a provider that the table does not have.
func Known(provider string) []string { return slices.Clone(tables().names[provider]) }

// table is the built-in table: models by the provider's name, and by the host of
// its address; and their names, as the table has them.
type table struct {
	byName, byHost map[string]map[string]catwalk.Model
	names          map[string][]string
}

// tables reads the built-in table, which takes milliseconds, when it is first
// needed.
var tables = sync.OnceValue(func() table {
	t := table{map[string]map[string]catwalk.Model{}, map[string]map[string]catwalk.Model{}, map[string][]string{}}
	for _, p := range embedded.GetAll() {
		models := map[string]catwalk.Model{}
		for _, m := range p.Models {
			models[m.ID] = m
			t.names[string(p.ID)] = append(t.names[string(p.ID)], m.ID)
		}
		t.byName[string(p.ID)] = models
		if u, err := url.Parse(p.APIEndpoint); err == nil && u.Host != "" {
			t.byHost[u.Host] = models
		}
	}
	return t
})

// lookUp finds a model by its provider, or by where it is served, and by its name,
// or by its name without a date.
func lookUp(provider string, base *url.URL, model string) (catwalk.Model, bool) {
	t := tables()
	models, ok := t.byName[provider]
	if !ok {
		models = t.byHost[base.Host]
	}
	m, ok := models[model]
	if !ok {
		m, ok = models[undated(model)]
	}
	return m, ok
}

// undated takes the date, or the word latest, off the end of a model's name.
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
