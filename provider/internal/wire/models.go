package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/belay-run/belay"
)

// ModelNames reads and closes the answer to a request for the list of models. It returns the
// names in alphabetical order. The list is in the field "data" of a JSON object. If bare is
// set, the answer may also be just the list, as from Together.
func (f *Failures) ModelNames(ctx context.Context, answer *http.Response, bare bool) ([]string, error) {
	body, err := f.ReadList(ctx, answer)
	if err != nil {
		return nil, err
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	var into any = &list
	if bare && bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		into = &list.Data
	}
	if err := json.Unmarshal(body, into); err != nil {
		return nil, f.UnexpectedList(err)
	}
	names := make([]string, 0, len(list.Data))
	for _, listed := range list.Data {
		names = append(names, listed.ID)
	}
	slices.Sort(names)
	return names, nil
}

// ReadList reads and closes the answer to a request for the list of models.
func (f *Failures) ReadList(ctx context.Context, answer *http.Response) ([]byte, error) {
	defer func() { _ = answer.Body.Close() }()
	if err := NotAResponse(answer); err != nil {
		return nil, f.NotAResponse(answer, err)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxList+1))
	if err != nil {
		return nil, UnlessDone(ctx, f.New(belay.ModelNetwork, fmt.Errorf("the list of models ended too early: %w", err)))
	}
	if len(body) > maxList {
		return nil, f.New(belay.ModelServer, fmt.Errorf("the list of models is longer than %d MiB", maxList>>20))
	}
	return body, nil
}

// UnexpectedList returns the error for a list of models that Belay cannot decode.
func (f *Failures) UnexpectedList(err error) error {
	return f.New(belay.ModelServer, Unexpected("the list of models", err))
}
