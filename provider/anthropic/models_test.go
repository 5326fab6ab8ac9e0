package anthropic_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/providertest"
)

func TestModelsAreListed(t *testing.T) {
	t.Parallel()
	server := providertest.NewAnthropic(t, nil)
	model := anthropic.New("m", &anthropic.Options{URL: server.URL(), Key: server.Key()})
	names, err := model.Models(t.Context())
	if err != nil || !slices.Equal(names, []string{"another-model", "model-of-a-test"}) {
		t.Errorf("got %q, %v, want the models of the server", names, err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := model.Models(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the error of the context", err)
	}
	if n := len(server.Requests()); n != 0 {
		t.Errorf("a list is no request to the model, and there are %d", n)
	}
	_, err = anthropic.New("m", &anthropic.Options{URL: server.URL(), Key: "wrong"}).Models(t.Context())
	wantKind(t, err, belay.ModelAuth)
	server.Close()
	_, err = model.Models(t.Context())
	wantKind(t, err, belay.ModelInvalid)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer page.Close()
	_, err = anthropic.New("m", &anthropic.Options{URL: page.URL, Key: "key-of-nobody"}).Models(t.Context())
	wantKind(t, err, belay.ModelInvalid)
	_, err = anthropic.New("m", &anthropic.Options{URL: "ftp://localhost", Key: "key-of-nobody"}).Models(t.Context())
	wantKind(t, err, belay.ModelInvalid)
}

func wantKind(t *testing.T, err error, kind belay.ModelErrorKind) {
	t.Helper()
	if failure, ok := errors.AsType[*belay.ModelError](err); !ok || failure.Kind != kind {
		t.Errorf("got %v, want an error of kind %s", err, kind)
	}
}

// What is known has a window and a price.
func TestKnown(t *testing.T) {
	t.Parallel()
	names := anthropic.Known()
	if len(names) == 0 {
		t.Error("no model is known")
	}
	for _, name := range names {
		if info := anthropic.New(name, nil).Info(); info.Window == 0 || info.Price.In == 0 {
			t.Errorf("%s is known, and its window is %d, its price %v", name, info.Window, info.Price)
		}
	}
}
