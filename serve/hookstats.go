package serve

import (
	"context"
	"time"

	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/serve/api"
)

// statsSpan is how far back the statistics of hooks go by default.
const statsSpan = 24 * time.Hour

func hookStats(ctx context.Context, s *Server, _ *request, in *api.HookStats) (api.HookStatList, error) {
	journal, err := s.journal()
	if err != nil {
		return api.HookStatList{}, err
	}
	since := in.Since
	if since.IsZero() {
		since = time.Now().Add(-statsSpan)
	}
	return inspect.HookStats(ctx, journal, since, in.Limit)
}
