package assembly

import (
	"net/http"

	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/netguard"
)

// transportOf returns the HTTP transport for webhooks and MCP servers, or nil if the
// settings do not need a special one.
func transportOf(s *config.Loaded) http.RoundTripper {
	if len(s.Network.PrivateHosts) == 0 && !s.Network.Proxy {
		return nil
	}
	return netguard.Transport(&netguard.Options{Private: s.Network.PrivateHosts, Proxy: s.Network.Proxy})
}
