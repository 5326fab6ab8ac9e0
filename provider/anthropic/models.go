package anthropic

import (
	"context"

	"github.com/belay-run/belay/provider/internal/wire"
)

// Models returns the names of the service's models. The request is free, so you can use it
// to check that the service is reachable and accepts the key. It does not check that this
// model is in the list. An error is a [*belay.ModelError] or the error of the context.
func (m *Model) Models(ctx context.Context) ([]string, error) {
	if m.broken != nil {
		return nil, m.failures.Unusable(m.broken)
	}
	answer, err := m.endpoint.Fetch(ctx, "v1/models?limit=1000") //nolint:bodyclose // ModelNames closes it
	if err != nil {
		return nil, wire.UnlessDone(ctx, m.refused(err))
	}
	return m.failures.ModelNames(ctx, answer, false)
}
