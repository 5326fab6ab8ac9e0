package openai_test

import (
	"net/http"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wiretest"
	"github.com/belay-run/belay/provider/openai"
	"github.com/belay-run/belay/provider/providertest"
)

func TestModelsAreListed(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, api openai.API, server providertest.Server) {
		wiretest.ModelsAreListed(t, server, func(url, key string) wiretest.Lister {
			return openai.New("gpt-5.2", &openai.Options{API: api, URL: url, Key: key})
		})
	})
	_, err := wild(t, openai.Chat, http.StatusOK, "text/html", "<html>").(*openai.Model).Models(t.Context())
	_ = wantFailure(t, err, belay.ModelInvalid, "answered text/html")
	_, err = wild(t, openai.Chat, http.StatusOK, "application/json", "<html>").(*openai.Model).Models(t.Context())
	_ = wantFailure(t, err, belay.ModelServer, "does not have the expected form")
	_, err = openai.New("m", &openai.Options{URL: "ftp://localhost"}).Models(t.Context())
	_ = wantFailure(t, err, belay.ModelInvalid, "Options.URL")
}

// Known models have a window. Those of OpenAI also have a price.
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
