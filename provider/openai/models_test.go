package openai_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/openai"
	"github.com/belay-run/belay/provider/providertest"
)

func TestModelsAreListed(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, api openai.API, server providertest.Server) {
		names, err := open(server, &openai.Options{API: api}).Models(t.Context())
		if err != nil || !slices.Equal(names, []string{"another-model", "model-of-a-test"}) {
			t.Errorf("got %q, %v, want the models of the server", names, err)
		}
		_, err = openai.New("m", &openai.Options{API: api, URL: server.URL(), Key: "wrong"}).Models(t.Context())
		if e := wantFailure(t, err, belay.ModelAuth, "Incorrect API key"); e.Status != http.StatusUnauthorized {
			t.Errorf("the status is %d", e.Status)
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := open(server, &openai.Options{API: api}).Models(cancelled); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the error of the context", err)
		}
		if n := len(server.Requests()); n != 0 {
			t.Errorf("a list is no request to the model, and there are %d", n)
		}
		server.Close()
		_, err = open(server, &openai.Options{API: api}).Models(t.Context())
		_ = wantFailure(t, err, belay.ModelInvalid, "nothing listens at 127.0.0.1:")
	})
	_, err := wild(t, openai.Chat, http.StatusOK, "text/html", "<html>").(*openai.Model).Models(t.Context())
	_ = wantFailure(t, err, belay.ModelInvalid, "it answered text/html")
	_, err = wild(t, openai.Chat, http.StatusOK, "application/json", "<html>").(*openai.Model).Models(t.Context())
	_ = wantFailure(t, err, belay.ModelServer, "does not have the expected form")
	_, err = openai.New("m", &openai.Options{URL: "ftp://localhost"}).Models(t.Context())
	_ = wantFailure(t, err, belay.ModelInvalid, "Options.URL")
}

// What is known of a provider has a window; of OpenAI's own, a price too.
func TestKnown(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"openai", "openrouter"} {
		names := openai.Known(provider)
		if len(names) == 0 {
			t.Errorf("no model of %s is known", provider)
		}
		for _, name := range names {
			if info := openai.New(name, &openai.Options{Provider: provider}).Info(); info.Window == 0 || info.Price.In == 0 && provider == "openai" {
				t.Errorf("%s/%s is known, and its window is %d, its price %v", provider, name, info.Window, info.Price)
			}
		}
	}
	if names := openai.Known("nobody"); names != nil {
		t.Errorf("models of nobody: %q", names)
	}
}

func TestAListOfModelsMayBeMereOne(t *testing.T) {
	t.Parallel()
	model, ok := wild(t, openai.Chat, 200, jsonType, "\n[{\"id\":\"b\"},{\"id\":\"a\"}]").(*openai.Model)
	if !ok {
		t.Fatal("it is another model")
	}
	if names, err := model.Models(t.Context()); err != nil || len(names) != 2 || names[0] != "a" {
		t.Errorf("got %v, %v, want a and b", names, err)
	}
}
