package serve

import (
	"net/http"
	"time"
)

// metricsPage is the operation of /metrics. It is not in the OpenAPI document, like /healthz:
// it is for Prometheus and not for clients of the API.
var metricsPage = operation{id: "readMetrics", role: RoleRead, unlimited: true}

// metrics shows the metrics to Prometheus. They are about all sessions, and names of tools and
// hooks are in them, so a token is needed, and one that is not limited to a tenant.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	token, p := s.authenticate(r)
	if p == nil {
		p = s.usages.request(token, time.Now())
	}
	if p == nil {
		p = s.refusal(&metricsPage, token, r)
	}
	if p != nil {
		p.send(w)
		return
	}
	s.opts.Metrics.ServeHTTP(w, r)
}
