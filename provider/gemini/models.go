package gemini

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/belay-run/belay/provider/internal/wire"
)

// Models returns the names of the service's models that generate content. The request is
// free, so you can use it to check that the service is reachable and accepts the key. It
// does not check that this model is in the list. An error is a [*belay.ModelError] or the
// error of the context.
func (m *Model) Models(ctx context.Context) ([]string, error) {
	if m.broken != nil {
		return nil, m.failures.Unusable(m.broken)
	}
	answer, err := m.endpoint.Fetch(ctx, "models?pageSize=1000") //nolint:bodyclose // ReadList closes it
	if err != nil {
		return nil, wire.UnlessDone(ctx, m.refused(err))
	}
	body, err := m.failures.ReadList(ctx, answer)
	if err != nil {
		return nil, err
	}
	var page struct {
		Models []struct {
			Name    string   `json:"name"`
			Methods []string `json:"supportedGenerationMethods"` //nolint:tagliatelle // the service's name
		} `json:"models"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, m.failures.UnexpectedList(err)
	}
	names := make([]string, 0, len(page.Models))
	for _, listed := range page.Models {
		if len(listed.Methods) == 0 || slices.Contains(listed.Methods, "generateContent") {
			names = append(names, strings.TrimPrefix(listed.Name, "models/"))
		}
	}
	slices.Sort(names)
	return names, nil
}
