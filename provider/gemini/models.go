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

// pageSize is how many models a request lists: enough for all of them.
const pageSize = 1000

// Models returns the names of the models of the service that generate content. The request
// costs nothing, so it is also a way to check that the service is reachable and accepts the
// key. An error is a [*belay.ModelError], as from a request. Models does not check that this
// model is listed.
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

// notListed returns the error of a list that the service refused or did not send.
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
