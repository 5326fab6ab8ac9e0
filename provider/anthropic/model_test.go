package anthropic_test

import (
	"encoding/json"
	"strings"
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
		bound    int // MaxTokens of the request
		want     int
		thinking string
	}{
		{"a request's bound counts", "claude-sonnet-4-5", anthropic.Options{MaxTokens: 7000}, 500, 500, ""},
		{"else the model's", "claude-sonnet-4-5", anthropic.Options{MaxTokens: 7000}, 0, 7000, ""},
		{"else what a listed model can, within reason", "claude-sonnet-4-5", anthropic.Options{}, 0, 32_000, ""},
		{"else what every model can", "claude-of-tomorrow", anthropic.Options{}, 0, 8192, ""},
		{"a budget is sent", "claude-sonnet-4-5", anthropic.Options{Thinking: 4000}, 0, 32_000, `{"type":"enabled","budget_tokens":4000}`},
		{"a budget gives way to a bound", "claude-sonnet-4-5", anthropic.Options{Thinking: 4000}, 2000, 2000, `{"type":"enabled","budget_tokens":1999}`},
		{"a bound that leaves no room turns thinking off", "claude-sonnet-4-5", anthropic.Options{Thinking: 4000}, 1024, 1024, ""},
		{"adaptive thinking has no budget", "claude-sonnet-4-5", anthropic.Options{Thinking: anthropic.Adaptive}, 100, 100, `{"type":"adaptive","display":"summarized"}`},
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

func TestWhatCannotBeSentIsInvalid(t *testing.T) {
	t.Parallel()
	hello := &belay.Request{Messages: []*belay.Message{user("a")}}
	for _, url := range []string{"localhost:1", "ftp://localhost", "http://[", "https://", "https://user:\x7fsecret@host", "ftp://user:secret@host"} {
		_, err := answer(t, anthropic.New("m", &anthropic.Options{Key: "k", URL: url}), hello)
		wantFailure(t, err, belay.ModelInvalid, "Options.URL")
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error contains a password: %v", err)
		}
	}
	_, err := answer(t, anthropic.New("m", &anthropic.Options{Key: "k"}), &belay.Request{Tools: []belay.ToolDeclaration{{Name: "look", InputSchema: json.RawMessage("{")}}})
	wantFailure(t, err, belay.ModelInvalid, "cannot be encoded")
}
