package gemini

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
	if listed, ok := models()[strings.TrimPrefix(model, "models/")]; ok {
		info.Window = int(listed.ContextWindow)
		info.MaxOutput = int(listed.DefaultMaxTokens)
		// The table says "out cached" for what is read from the cache. The service
		// does not tell what it writes to it, and asks nothing for it.
		info.Price = belay.Price{In: listed.CostPer1MIn, Out: listed.CostPer1MOut, CacheRead: listed.CostPer1MOutCached}
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
		if p.ID == catwalk.InferenceProviderGemini {
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
	}
	return listed
})
