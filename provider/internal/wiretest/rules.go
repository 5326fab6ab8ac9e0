package wiretest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/providertest"
)

// Lister is a model that can list the models of its service.
type Lister interface {
	belay.Model
	Models(ctx context.Context) ([]string, error)
}

// AnswersAreLimited checks that a model returns an error for an answer that never ends.
func AnswersAreLimited(t testing.TB, open func(client *http.Client) Lister) {
	t.Helper()
	_, err := Answer(t, open(&http.Client{Transport: endless{http.StatusOK}}), Hello())
	_ = WantFailure(t, err, belay.ModelInvalid, "longer than 256 MiB")
}

// RefusalsAreLimited checks that a model returns a short error for a refusal that never
// ends.
func RefusalsAreLimited(t testing.TB, open func(client *http.Client) Lister) {
	t.Helper()
	model := open(&http.Client{Transport: endless{http.StatusServiceUnavailable}})
	_, err := Answer(t, model, Hello())
	_ = WantFailure(t, err, belay.ModelServer, "....")
	if _, err = model.Models(t.Context()); len(err.Error()) > 1000 {
		t.Errorf("the error is too long: %.2000s", err)
	}
	_ = WantFailure(t, err, belay.ModelServer, "....")
}

// RedirectsAreNotFollowed checks that the model follows no redirect, neither to another host
// nor to the same host. A redirect could leak the key, because net/http does not remove
// every header that contains a key.
func RedirectsAreNotFollowed(t *testing.T, open func(url string) belay.Model) {
	t.Helper()
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			var reached atomic.Bool
			other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
			t.Cleanup(other.Close)
			same := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/elsewhere" {
					reached.Store(true)
				}
				http.Redirect(w, r, "/elsewhere", status)
			}))
			t.Cleanup(same.Close)
			front := httptest.NewServer(http.RedirectHandler(other.URL, status))
			t.Cleanup(front.Close)
			for _, url := range []string{front.URL, same.URL} {
				if _, err := Answer(t, open(url), Hello()); err == nil || reached.Load() {
					t.Errorf("got %v, want a failure; a second request was sent: %t", err, reached.Load())
				}
			}
		})
	}
}

// ModelsAreListed checks the method Models: its result, its errors and cancellation.
func ModelsAreListed(t testing.TB, server providertest.Server, open func(url, key string) Lister) {
	t.Helper()
	model := open(server.URL(), server.Key())
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
		t.Errorf("listing the models sent %d requests to a model, want 0", n)
	}
	_, err = open(server.URL(), "wrong").Models(t.Context())
	if failure := WantFailure(t, err, belay.ModelAuth, ""); failure.Status < http.StatusBadRequest {
		t.Errorf("the status is %d, want that of the refusal", failure.Status)
	}
	server.Close()
	_, err = model.Models(t.Context())
	_ = WantFailure(t, err, belay.ModelInvalid, "listens at 127.0.0.1:")
	_, err = open(Serve(t, http.StatusOK, "text/html", "<html>"), "key-of-nobody").Models(t.Context())
	_ = WantFailure(t, err, belay.ModelInvalid, "text/html")
	_, err = open("ftp://localhost", "key-of-nobody").Models(t.Context())
	_ = WantFailure(t, err, belay.ModelInvalid, "Options.URL")
}

// KnownModelsHaveAPrice checks that models of the built-in table have a window and a price.
func KnownModelsHaveAPrice(t testing.TB, names []string, info func(name string) belay.ModelInfo) {
	t.Helper()
	if len(names) == 0 {
		t.Error("no model is known")
	}
	for _, name := range names {
		if info := info(name); info.Window == 0 || info.Price.In == 0 {
			t.Errorf("%s is known, but its window is %d and its price %v", name, info.Window, info.Price)
		}
	}
}

// KeysAreHidden checks that printing a model or its errors does not show the key.
func KeysAreHidden(t testing.TB, open func(url, key string) belay.Model) {
	t.Helper()
	const key = "key-that-nobody-may-see"
	model := open("http://127.0.0.1:1", key)
	_, err := Answer(t, model, Hello())
	for _, text := range []string{fmt.Sprintf("%v", model), fmt.Sprintf("%+v", model), fmt.Sprintf("%#v", model), fmt.Sprintf("%v %+v %#v", err, err, err)} {
		if strings.Contains(text, key) {
			t.Errorf("the key is visible in %s", text)
		}
	}
}

// ConnectionsAreReused checks that consecutive requests use the same connection.
func ConnectionsAreReused(t testing.TB, open func(client *http.Client) belay.Model, ask func(model belay.Model)) {
	t.Helper()
	var dialled atomic.Int64
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled.Add(1)
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}}
	defer transport.CloseIdleConnections()
	model := open(&http.Client{Transport: transport})
	for range 5 {
		ask(model)
	}
	if n := dialled.Load(); n != 1 {
		t.Errorf("the requests took %d connections, want 1", n)
	}
}

// OldMessagesAreEncodedOnce checks that a model caches the encoding of a message. A later
// change of the message must have no effect.
func OldMessagesAreEncodedOnce(t testing.TB, server providertest.Server, open func() belay.Model) {
	t.Helper()
	req := Hello()
	first := Ask(t, server, open(), req)
	req.Messages[0].Parts[0].Text = "changed"
	second := Ask(t, server, open(), req)
	if !bytes.Equal(first.Body, second.Body) {
		t.Errorf("the message was encoded again: %s", second.Body)
	}
}

// HeadsAreDistinguished checks that a model uses a cached head only for a request with the
// same system prompt, tools and limit. The schema must end with a title of one letter,
// because the check changes this letter.
func HeadsAreDistinguished(t testing.TB, server providertest.Server, model belay.Model, schema json.RawMessage) {
	t.Helper()
	for round := range 2 {
		for i := range 12 {
			// Each request differs from the previous one in one of three values.
			schema[len(schema)-3] = byte('a' + i/3) // all declarations share these bytes
			req := &belay.Request{System: fmt.Sprint("system ", (i+1)/3), MaxTokens: 1000 + (i+2)/3, Tools: []belay.ToolDeclaration{{Name: "look", InputSchema: schema}}, Messages: []*belay.Message{User("a")}}
			r := Ask(t, server, model, req)
			if r.System != req.System || r.MaxTokens != req.MaxTokens || !bytes.Equal(r.Tools[0].InputSchema, schema) {
				t.Errorf("round %d, request %d: got %q, %d, %s", round, i, r.System, r.MaxTokens, r.Tools[0].InputSchema)
			}
		}
	}
}
