package gemini_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/gemini"
	"github.com/belay-run/belay/provider/internal/wiretest"
	"github.com/belay-run/belay/provider/providertest"
)

var (
	message   = wiretest.Message
	user      = wiretest.User
	call      = wiretest.Call
	result    = wiretest.Result
	hello     = wiretest.Hello
	ask       = wiretest.Ask
	answer    = wiretest.Answer
	failureOf = wiretest.WantFailure
)

func wantFailure(t testing.TB, err error, kind belay.ModelErrorKind, phrase string) {
	t.Helper()
	_ = failureOf(t, err, kind, phrase) // the test needs only the check
}

// wild returns a model whose server sends the same answer to every request.
func wild(t *testing.T, status int, contentType, body string, headers ...string) belay.Model {
	t.Helper()
	return gemini.New(newer, &gemini.Options{Key: "key-of-a-test", URL: wiretest.Serve(t, status, contentType, body, headers...)})
}

// stream returns a model whose server sends these events.
func stream(t *testing.T, events ...string) belay.Model {
	t.Helper()
	var b strings.Builder
	for _, e := range events {
		b.WriteString(event(e))
	}
	return wild(t, http.StatusOK, "text/event-stream", b.String())
}

// event returns a server-sent event, with the service's line endings.
func event(data string) string { return "data: " + data + "\r\n\r\n" }

// parts returns the data of an event with these parts.
func parts(parts ...string) string {
	return `{"candidates":[{"content":{"parts":[` + strings.Join(parts, ",") + `],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":4},"modelVersion":"gemini-3-flash-preview-09","responseId":"mAitaLmkHPPlz7IP"}`
}

// stopped returns the data of the event that ends a stream.
func stopped(word string) string {
	return `{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"` + word + `","index":0}]}`
}

// echo starts a server that stores the last request body and sends an empty response.
func echo(t *testing.T, sent *[]byte) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*sent, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, event(stopped("STOP")))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func openAt(client *http.Client) wiretest.Lister {
	return gemini.New("m", &gemini.Options{Key: "k", URL: "http://localhost", HTTPClient: client})
}

func TestAnAnswerThatDoesNotEndIsBounded(t *testing.T) {
	t.Parallel()
	wiretest.AnswersAreLimited(t, openAt)
}

func TestARefusalThatDoesNotEndIsBounded(t *testing.T) {
	t.Parallel()
	wiretest.RefusalsAreLimited(t, openAt)
}

func TestTheKeyDoesNotFollowRedirects(t *testing.T) {
	t.Parallel()
	wiretest.RedirectsAreNotFollowed(t, func(url string) belay.Model {
		return gemini.New("m", &gemini.Options{Key: "key-of-a-test", URL: url})
	})
}

func TestModelsAreListed(t *testing.T) {
	t.Parallel()
	wiretest.ModelsAreListed(t, providertest.NewGemini(t, nil), func(url, key string) wiretest.Lister {
		return gemini.New("m", &gemini.Options{URL: url, Key: key})
	})
}

func TestKnown(t *testing.T) {
	t.Parallel()
	wiretest.KnownModelsHaveAPrice(t, gemini.Known(), func(name string) belay.ModelInfo { return gemini.New(name, nil).Info() })
}

func TestAModelDoesNotShowItsKey(t *testing.T) {
	t.Parallel()
	wiretest.KeysAreHidden(t, func(url, key string) belay.Model {
		return gemini.New("m", &gemini.Options{URL: url, Key: key})
	})
}

func TestOldMessagesAreNotEncodedAgain(t *testing.T) {
	t.Parallel()
	server := providertest.NewGemini(t, nil)
	wiretest.OldMessagesAreEncodedOnce(t, server, func() belay.Model { return open(server, nil) })
}

func TestHeadsAreToldApart(t *testing.T) {
	t.Parallel()
	server := providertest.NewGemini(t, nil)
	wiretest.HeadsAreDistinguished(t, server, open(server, nil), json.RawMessage(`{"type":"object","title":"a"}`))
}
