package anthropic

import (
	"strings"
	"sync"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"

	"github.com/belay-run/belay"
)

// describe looks a model up and lets the options overrule what is found.
func describe(model string, o *Options) belay.ModelInfo {
	info := belay.ModelInfo{Name: provider + "/" + model}
	if listed, ok := lookUp(model); ok {
		info.Window = int(listed.ContextWindow)
		info.MaxOutput = int(listed.DefaultMaxTokens)
		// The table says "in cached" for what is written to the cache and "out
		// cached" for what is read from it.
		info.Price = belay.Price{
			In: listed.CostPer1MIn, Out: listed.CostPer1MOut,
			CacheWrite: listed.CostPer1MInCached, CacheRead: listed.CostPer1MOutCached,
		}
	}
	if o.Window > 0 {
		info.Window = o.Window
	}
	if o.Price != (belay.Price{}) {
		info.Price = o.Price
	}
	return info
}

// Known lists the names of the models in the built-in table, for showing which
// there are: [Model.Info] tells the window and the price of each. Others can be
// asked too.
func Known() []string {
	var names []string
	for _, m := range table() {
		names = append(names, m.ID)
	}
	return names
}

// table reads the built-in table, which takes milliseconds, when it is first
// needed.
var table = sync.OnceValue(func() []catwalk.Model {
	for _, p := range embedded.GetAll() {
		if p.ID == catwalk.InferenceProviderAnthropic {
			return p.Models
		}
	}
	return nil
})

// models finds a model of the table by its name.
var models = sync.OnceValue(func() map[string]catwalk.Model {
	listed := make(map[string]catwalk.Model)
	for _, m := range table() {
		listed[m.ID] = m
		// The name without a date is an alias of the newest of that name.
		if alias := undated(m.ID); alias != m.ID && listed[alias].ID < m.ID {
			listed[alias] = m
		}
	}
	return listed
})

// lookUp finds a model by its name, or by its name without a date.
func lookUp(model string) (catwalk.Model, bool) {
	if m, ok := models()[model]; ok {
		return m, true
	}
	m, ok := models()[undated(model)]
	return m, ok
}

// undated takes the date, or the word latest, off the end of a model's name.
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
