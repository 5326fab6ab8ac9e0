package anthropic

import (
	"context"

	"github.com/belay-run/belay/provider/internal/wire"
)

// Models returns the names of the models that the service has. The request costs nothing, so
// it is also a way to check that the service is reachable and accepts the key. An error is a
// [*belay.ModelError], as from a request. Models does not check that this model is listed.
func (m *Model) Models(ctx context.Context) ([]string, error) {
	if m.broken != nil {
		return nil, m.failures.Unusable(m.broken)
	}
	answer, err := m.endpoint.Fetch(ctx, "v1/models?limit=1000")
	if err != nil {
		return nil, wire.UnlessDone(ctx, m.refused(err))
	}
	return m.failures.ModelNames(ctx, answer, false)
}
