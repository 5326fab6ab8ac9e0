package anthropic

import (
	"context"
	"net/http"

	"github.com/belay-run/belay/provider/internal/wire"
)

// Models lists the names of the models that the service has. It costs nothing, so
// that it also shows whether the service is there and takes the key: an error is a
// [*belay.ModelError], as from a request. Whether the service has this very model
// is for the caller to look up.
func (m *Model) Models(ctx context.Context) ([]string, error) {
	if m.broken != nil {
		return nil, m.failures.Unusable(m.broken)
	}
	var answer *http.Response
	if err := m.client.Execute(ctx, http.MethodGet, "v1/models?limit=1000", nil, &answer); err != nil {
		return nil, wire.UnlessDone(ctx, m.refused(answer, err))
	}
	return m.failures.ModelNames(ctx, answer, false)
}
