package wire

import (
	"net/url"
	"sync"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"

	"github.com/belay-run/belay"
)

// Catalog lists the models of one provider in the built-in table. A nil Catalog is empty.
type Catalog struct {
	Models []catwalk.Model
	byName map[string]*catwalk.Model
}

// catalogs are the built-in catalogs, by the name of the provider and by the host of its
// API. Decoding the table takes milliseconds, so it is decoded on first use.
var catalogs = sync.OnceValue(func() (all struct{ byName, byHost map[string]*Catalog }) {
	all.byName, all.byHost = map[string]*Catalog{}, map[string]*Catalog{}
	for _, p := range embedded.GetAll() {
		c := &Catalog{p.Models, make(map[string]*catwalk.Model, len(p.Models))}
		for i := range c.Models {
			c.byName[c.Models[i].ID] = &c.Models[i]
		}
		all.byName[string(p.ID)] = c
		if u, err := url.Parse(p.APIEndpoint); err == nil && u.Host != "" {
			all.byHost[u.Host] = c
		}
	}
	return all
})

// CatalogOf returns the catalog of a provider, or nil if the provider is not in the table.
func CatalogOf(provider string) *Catalog { return catalogs().byName[provider] }

// CatalogAt returns the catalog of the provider whose API is at a host name. It returns nil
// if the table has no such provider.
func CatalogAt(host string) *Catalog { return catalogs().byHost[host] }

// Names returns the names of the models, in the order of the table.
func (c *Catalog) Names() []string {
	if c == nil {
		return nil
	}
	var names []string
	for i := range c.Models {
		names = append(names, c.Models[i].ID)
	}
	return names
}

// Find returns the model with a name, or nil if there is none.
func (c *Catalog) Find(name string) *catwalk.Model {
	if c == nil {
		return nil
	}
	return c.byName[name]
}

// Info describes a model. listed is the model's entry in the table, or nil, and price returns
// the prices of an entry. If window or override is not zero, it replaces the value of the
// table.
func Info(name string, listed *catwalk.Model, price func(*catwalk.Model) belay.Price, window int, override belay.Price) belay.ModelInfo {
	info := belay.ModelInfo{Name: name}
	if listed != nil {
		info.Window = int(listed.ContextWindow)
		info.MaxOutput = int(listed.DefaultMaxTokens)
		info.Price = price(listed)
	}
	if window > 0 {
		info.Window = window
	}
	if override != (belay.Price{}) {
		info.Price = override
	}
	return info
}
