package gemini

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	sdk "google.golang.org/genai"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// pageSize is how many models are asked for at a time: all of them.
const pageSize = 1000

// Models lists the names of the models that the service has and that answer in
// words. It costs nothing, so that it also shows whether the service is there and
// takes the key: an error is a [*belay.ModelError], as from a request. Whether the
// service has this very model is for the caller to look up.
func (m *Model) Models(ctx context.Context) ([]string, error) {
	if m.broken != nil {
		return nil, m.failures.Unusable(m.broken)
	}
	attempt, cancel := m.attempt(ctx)
	defer cancel()
	page, err := m.client.Models.List(attempt, &sdk.ListModelsConfig{PageSize: pageSize})
	if err != nil {
		return nil, wire.UnlessDone(ctx, m.notListed(err))
	}
	names := make([]string, 0, len(page.Items))
	for _, listed := range page.Items {
		if len(listed.SupportedActions) == 0 || slices.Contains(listed.SupportedActions, "generateContent") {
			names = append(names, strings.TrimPrefix(listed.Name, "models/"))
		}
	}
	slices.Sort(names)
	return names, nil
}

// notListed makes the error of a list that was refused, or did not come.
func (m *Model) notListed(err error) error {
	if _, lost := errors.AsType[*url.Error](err); lost {
		return m.failures.NoAnswer(err)
	}
	refusal, ok := errors.AsType[sdk.APIError](err)
	if !ok || refusal.Code < http.StatusBadRequest {
		return m.failures.New(belay.ModelServer, wire.Unexpected("the list of models", err))
	}
	said := saidBy(err)
	failed := m.failures.New(kindOf(refusal.Code, said), said)
	failed.Status = refusal.Code
	return failed
}
