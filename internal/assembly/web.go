package assembly

import (
	"errors"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/netguard"
	"github.com/belay-run/belay/webtool"
)

// webTools makes the tools that read the web. The settings say which tools the agent has, and
// which search engine is asked.
func webTools(s *config.Loaded) (*webtool.Extension, error) {
	opts := &webtool.Options{Transport: netguard.Transport(&netguard.Options{Private: s.Network.PrivateHosts, Proxy: s.Network.Proxy})}
	var err error
	switch {
	case s.Web.Search == "searxng" && s.Web.URL == "":
		err = errors.New("searxng needs its address: set web.url")
	case s.Web.Search == "searxng":
		opts.Search = webtool.SearXNG(s.Web.URL)
	case s.Web.Search == "brave":
		key := s.Environment(s.Web.KeyEnv)
		if key == "" {
			err = errors.New("brave needs a key: set web.key_env to the name of the variable that has the key, and set the variable")
		}
		opts.Search = webtool.Brave(s.Web.URL, key)
	}
	if err != nil {
		return nil, mistake("%s: web.search: %w", s.From("web.search"), err)
	}
	made := webtool.New(opts)
	if s.Tools != nil {
		made = made.Only(s.Tools...)
	}
	return made, nil
}

// webToolsOf returns the web tools of a declared agent.
func webToolsOf(web *webtool.Extension, tools []string) []belay.Extension {
	if tools == nil {
		return []belay.Extension{web}
	}
	if !slices.ContainsFunc(tools, isWebTool) {
		return nil
	}
	return []belay.Extension{web.Only(tools...)}
}

// isWebTool reports whether a name is one of the tools that read the web.
func isWebTool(name string) bool { return name == webtool.FetchTool || name == webtool.SearchTool }
