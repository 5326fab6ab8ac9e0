package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/belay-run/belay"
)

// mostListed bounds a list of models. OpenRouter's is the longest.
const mostListed = 16 << 20

// Models lists the names of the models that the service has. It costs nothing, so
// that it also shows whether the service is there and takes the key: an error is a
// [*belay.ModelError], as from a request. Whether the service has this very model
// is for the caller to look up.
func (m *Model) Models(ctx context.Context) ([]string, error) {
	switch {
	case errors.Is(m.broken, errNoKey):
		return nil, m.failed(belay.ModelAuth, m.broken)
	case m.broken != nil:
		return nil, m.failed(belay.ModelInvalid, m.broken)
	}
	var answer *http.Response
	if err := m.client.Execute(ctx, http.MethodGet, "models", nil, &answer); err != nil {
		return nil, unlessDone(ctx, m.refused(answer, err))
	}
	defer func() { _ = answer.Body.Close() }()
	if err := strange(answer); err != nil {
		return nil, m.isStrange(answer, err)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostListed))
	if err != nil {
		return nil, unlessDone(ctx, m.failed(belay.ModelNetwork, fmt.Errorf("the list of models was cut: %w", err)))
	}
	type model struct {
		ID string `json:"id"`
	}
	var list struct {
		Data []model `json:"data"`
	}
	var into any = &list
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		into = &list.Data // as Together lists them
	}
	if err := json.Unmarshal(body, into); err != nil {
		return nil, m.failed(belay.ModelServer, fmt.Errorf("the list of models is not what was agreed: %w", err))
	}
	names := make([]string, 0, len(list.Data))
	for _, listed := range list.Data {
		names = append(names, listed.ID)
	}
	slices.Sort(names)
	return names, nil
}
