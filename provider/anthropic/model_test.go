package anthropic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/providertest"
)

func TestInfo(t *testing.T) {
	t.Parallel()
	sonnet := belay.Price{In: 3, Out: 15, CacheRead: 0.3, CacheWrite: 3.75}
	for _, test := range []struct {
		rule  string
		model string
		opts  *anthropic.Options
		want  belay.ModelInfo
	}{
		{"a listed model is known", "claude-sonnet-4-5-20250929", nil, belay.ModelInfo{Name: "anthropic/claude-sonnet-4-5-20250929", Window: 200_000, MaxOutput: 64_000, Price: sonnet}},
		{"a name without its date is known", "claude-sonnet-4-5", nil, belay.ModelInfo{Name: "anthropic/claude-sonnet-4-5", Window: 200_000, MaxOutput: 64_000, Price: sonnet}},
		{"the latest of a name is known", "claude-sonnet-4-5-latest", nil, belay.ModelInfo{Name: "anthropic/claude-sonnet-4-5-latest", Window: 200_000, MaxOutput: 64_000, Price: sonnet}},
		{"a model that is not listed has its name", "claude-of-tomorrow", nil, belay.ModelInfo{Name: "anthropic/claude-of-tomorrow"}},
		{"options overrule", "claude-sonnet-4-5", &anthropic.Options{Window: 1_000_000, Price: belay.Price{In: 6}}, belay.ModelInfo{Name: "anthropic/claude-sonnet-4-5", Window: 1_000_000, MaxOutput: 64_000, Price: belay.Price{In: 6}}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, anthropic.New(test.model, test.opts).Info()); diff != "" {
				t.Errorf("info (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBoundAndThinking(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule     string
		model    string
		opts     anthropic.Options
		bound    int // of the request
		want     int
		thinking string
	}{
		{"a request's bound counts", "claude-sonnet-4-5", anthropic.Options{MaxTokens: 7000}, 500, 500, ""},
		{"else the model's", "claude-sonnet-4-5", anthropic.Options{MaxTokens: 7000}, 0, 7000, ""},
		{"else what a listed model can, within reason", "claude-sonnet-4-5", anthropic.Options{}, 0, 32_000, ""},
		{"else what every model can", "claude-of-tomorrow", anthropic.Options{}, 0, 8192, ""},
		{"a budget is sent", "claude-sonnet-4-5", anthropic.Options{Thinking: 4000}, 0, 32_000, `{"budget_tokens":4000,"type":"enabled"}`},
		{"a budget gives way to a bound", "claude-sonnet-4-5", anthropic.Options{Thinking: 4000}, 2000, 2000, `{"budget_tokens":1999,"type":"enabled"}`},
		{"a bound that leaves no room turns thinking off", "claude-sonnet-4-5", anthropic.Options{Thinking: 4000}, 1024, 1024, ""},
		{"adaptive thinking has no budget", "claude-sonnet-4-5", anthropic.Options{Thinking: anthropic.Adaptive}, 100, 100, `{"display":"summarized","type":"adaptive"}`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			server := providertest.NewAnthropic(t, nil)
			o := test.opts
			o.URL, o.Key = server.URL(), server.Key()
			r := ask(t, server, anthropic.New(test.model, &o), &belay.Request{MaxTokens: test.bound, Messages: []*belay.Message{user("a")}})
			var body struct {
				Thinking json.RawMessage `json:"thinking"`
			}
			if err := json.Unmarshal(r.Body, &body); err != nil {
				t.Fatal(err)
			}
			if r.MaxTokens != test.want || string(body.Thinking) != test.thinking {
				t.Errorf("got %d %s, want %d %s", r.MaxTokens, body.Thinking, test.want, test.thinking)
			}
		})
	}
}

func TestTheKeyComesFromTheEnvironment(t *testing.T) {
	server := providertest.NewAnthropic(t, &providertest.AnthropicOptions{Key: "key-of-the-environment"})
	t.Setenv("ANTHROPIC_API_KEY", server.Key())
	ask(t, server, anthropic.New("m", &anthropic.Options{URL: server.URL()}), &belay.Request{Messages: []*belay.Message{user("a")}})

	t.Setenv("ANTHROPIC_API_KEY", "another")
	ask(t, server, open(server, nil), &belay.Request{Messages: []*belay.Message{user("a")}})

	t.Setenv("ANTHROPIC_API_KEY", "")
	_, err := answer(t, anthropic.New("m", &anthropic.Options{URL: server.URL()}), &belay.Request{Messages: []*belay.Message{user("a")}})
	wantFailure(t, err, belay.ModelAuth, "ANTHROPIC_API_KEY")
	if n := len(server.Requests()); n != 2 {
		t.Errorf("the server got %d requests, want 2: without a key nothing is sent", n)
	}
}

// wantFailure asserts the kind of an error and a part of its text.
func wantFailure(t testing.TB, err error, kind belay.ModelErrorKind, text string) {
	t.Helper()
	var e *belay.ModelError
	if !errors.As(err, &e) || e.Kind != kind || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want an error of kind %s with %q in it", err, kind, text)
	}
}

func TestWhatCannotBeSentIsInvalid(t *testing.T) {
	t.Parallel()
	hello := &belay.Request{Messages: []*belay.Message{user("a")}}
	for _, url := range []string{"localhost:1", "ftp://localhost", "http://[", "https://", "https://user:\x7fsecret@host", "ftp://user:secret@host"} {
		_, err := answer(t, anthropic.New("m", &anthropic.Options{Key: "k", URL: url}), hello)
		wantFailure(t, err, belay.ModelInvalid, "Options.URL")
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error tells a password: %v", err)
		}
	}
	_, err := answer(t, anthropic.New("m", &anthropic.Options{Key: "k"}), &belay.Request{Tools: []belay.ToolDeclaration{{Name: "look", InputSchema: json.RawMessage("{")}}})
	wantFailure(t, err, belay.ModelInvalid, "cannot be encoded")
}

func TestAModelDoesNotShowItsKey(t *testing.T) {
	t.Parallel()
	const key = "key-that-nobody-may-see"
	model := anthropic.New("m", &anthropic.Options{Key: key, URL: "http://127.0.0.1:1"})
	_, err := answer(t, model, &belay.Request{Messages: []*belay.Message{user("a")}})
	for _, text := range []string{fmt.Sprintf("%v", model), fmt.Sprintf("%+v", model), fmt.Sprintf("%#v", model), fmt.Sprintf("%v %+v %#v", err, err, err)} {
		if strings.Contains(text, key) {
			t.Errorf("the key shows in %s", text)
		}
	}
}

func TestAnAnsweredConnectionIsUsedAgain(t *testing.T) {
	t.Parallel()
	server := providertest.NewAnthropic(t, nil)
	var dialled atomic.Int64
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled.Add(1)
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}}
	defer transport.CloseIdleConnections()
	model := open(server, &anthropic.Options{HTTPClient: &http.Client{Transport: transport}})
	for range 5 {
		ask(t, server, model, &belay.Request{Messages: []*belay.Message{user("a")}})
	}
	if n := dialled.Load(); n != 1 {
		t.Errorf("5 requests took %d connections, want 1", n)
	}
}
