package openai_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wiretest"
	"github.com/belay-run/belay/provider/openai"
	"github.com/belay-run/belay/provider/providertest"
)

var (
	message     = wiretest.Message
	user        = wiretest.User
	said        = wiretest.Said
	called      = wiretest.Call
	result      = wiretest.Result
	hello       = wiretest.Hello
	ask         = wiretest.Ask
	answer      = wiretest.Answer
	wantFailure = wiretest.WantFailure
)

// wild returns a model whose server sends the same answer to every request.
func wild(t testing.TB, api openai.API, status int, contentType, body string) belay.Model {
	t.Helper()
	return openai.New("m", &openai.Options{API: api, Key: "key-of-a-test", URL: wiretest.Serve(t, status, contentType, body)})
}

// both runs a test for each protocol.
func both(t *testing.T, test func(t *testing.T, api openai.API, server providertest.Server)) {
	t.Helper()
	for api, start := range map[openai.API]func(testing.TB) providertest.Server{openai.Responses: providertest.StartResponses, openai.Chat: providertest.StartChat} {
		t.Run(string(api), func(t *testing.T) {
			t.Parallel()
			test(t, api, start(t))
		})
	}
}

// event returns a server-sent event.
func event(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }

// data returns server-sent events without names.
func data(chunks ...string) string {
	var b strings.Builder
	for _, c := range chunks {
		b.WriteString("data: " + c + "\n\n")
	}
	return b.String()
}

func openAt(api openai.API) func(client *http.Client) wiretest.Lister {
	return func(client *http.Client) wiretest.Lister {
		return openai.New("m", &openai.Options{API: api, URL: "http://localhost", HTTPClient: client})
	}
}

func TestAnAnswerThatDoesNotEndIsBounded(t *testing.T) {
	t.Parallel()
	for _, api := range []openai.API{openai.Responses, openai.Chat} {
		wiretest.AnswersAreLimited(t, openAt(api))
	}
}

func TestARefusalThatDoesNotEndIsBounded(t *testing.T) {
	t.Parallel()
	wiretest.RefusalsAreLimited(t, openAt(openai.Chat))
}

func TestTheKeyDoesNotFollowRedirects(t *testing.T) {
	t.Parallel()
	wiretest.RedirectsAreNotFollowed(t, func(url string) belay.Model {
		return openai.New("m", &openai.Options{Key: "key-of-a-test", URL: url})
	})
}

func TestAModelDoesNotShowItsKey(t *testing.T) {
	t.Parallel()
	wiretest.KeysAreHidden(t, func(url, key string) belay.Model {
		return openai.New("m", &openai.Options{URL: url, Key: key})
	})
}
