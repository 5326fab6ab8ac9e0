package gemini_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/gemini"
	"github.com/belay-run/belay/provider/internal/wiretest"
	"github.com/belay-run/belay/provider/providertest"
)

func TestInfo(t *testing.T) {
	t.Parallel()
	flash := belay.Price{In: 0.3, Out: 2.5, CacheRead: 0.03}
	for _, test := range []struct {
		rule  string
		model string
		opts  *gemini.Options
		want  belay.ModelInfo
	}{
		{"a listed model is known", "gemini-2.5-flash", nil, belay.ModelInfo{Name: "gemini/gemini-2.5-flash", Window: 1_048_576, MaxOutput: 50_000, Price: flash}},
		{"a full name is known", "models/gemini-2.5-flash", nil, belay.ModelInfo{Name: "gemini/models/gemini-2.5-flash", Window: 1_048_576, MaxOutput: 50_000, Price: flash}},
		{"a model that is not listed has its name", "gemini-of-tomorrow", nil, belay.ModelInfo{Name: "gemini/gemini-of-tomorrow"}},
		{"options overrule", "gemini-2.5-flash", &gemini.Options{Window: 2_000_000, Price: belay.Price{In: 6}}, belay.ModelInfo{Name: "gemini/gemini-2.5-flash", Window: 2_000_000, MaxOutput: 50_000, Price: belay.Price{In: 6}}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, gemini.New(test.model, test.opts).Info()); diff != "" {
				t.Errorf("info (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBoundAndThinking(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule  string
		model string
		opts  gemini.Options
		bound int // MaxTokens of the request
		want  string
	}{
		{"without a bound none is sent", newer, gemini.Options{}, 0, ``},
		{"a request's bound counts", newer, gemini.Options{MaxTokens: 7000}, 500, `{"maxOutputTokens":500}`},
		{"else the model's", newer, gemini.Options{MaxTokens: 7000}, 0, `{"maxOutputTokens":7000}`},
		{"a budget is sent", newer, gemini.Options{Thinking: 4000}, 0, `{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":4000}}`},
		{"a budget gives way to a bound", newer, gemini.Options{Thinking: 4000}, 2000, `{"maxOutputTokens":2000,"thinkingConfig":{"includeThoughts":true,"thinkingBudget":1999}}`},
		{"a bound that leaves little room leaves it to the model", newer, gemini.Options{Thinking: 4000}, 400, `{"maxOutputTokens":400,"thinkingConfig":{"includeThoughts":true}}`},
		{"a small budget is sent as it is", newer, gemini.Options{Thinking: 128}, 0, `{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":128}}`},
		{"a new model decides by itself", newer, gemini.Options{Thinking: gemini.Adaptive}, 0, `{"thinkingConfig":{"includeThoughts":true}}`},
		{"an old model is asked to decide", older, gemini.Options{Thinking: gemini.Adaptive}, 0, `{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":-1}}`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			server := providertest.NewGemini(t, nil)
			req := hello()
			req.MaxTokens = test.bound
			r := ask(t, server, opened(test.model, server, &test.opts), req)
			var body struct {
				Config json.RawMessage `json:"generationConfig"` //nolint:tagliatelle // the service's name
			}
			if err := json.Unmarshal(r.Body, &body); err != nil {
				t.Fatal(err)
			}
			if string(body.Config) != test.want {
				t.Errorf("got %s, want %s", body.Config, test.want)
			}
		})
	}
}

func TestTheKeyComesFromTheEnvironment(t *testing.T) {
	server := providertest.NewGemini(t, &providertest.GeminiOptions{Key: "key-of-the-environment"})
	t.Setenv("GOOGLE_API_KEY", "")
	t.Setenv("GEMINI_API_KEY", server.Key())
	ask(t, server, gemini.New("m", &gemini.Options{URL: server.URL()}), hello())

	t.Setenv("GEMINI_API_KEY", "")
	t.Setenv("GOOGLE_API_KEY", server.Key())
	ask(t, server, gemini.New("m", &gemini.Options{URL: server.URL()}), hello())

	t.Setenv("GOOGLE_API_KEY", "another")
	ask(t, server, open(server, nil), hello())

	t.Setenv("GOOGLE_API_KEY", "")
	_, err := answer(t, gemini.New("m", &gemini.Options{URL: server.URL()}), hello())
	wantFailure(t, err, belay.ModelAuth, "GEMINI_API_KEY")
	if n := len(server.Requests()); n != 3 {
		t.Errorf("the server got %d requests, want 3: without a key nothing is sent", n)
	}
}

// Google's own programs read environment variables that would send the key to another
// address. This package must ignore them.
func TestTheEnvironmentDoesNotLeadElsewhere(t *testing.T) {
	server := providertest.NewGemini(t, nil)
	t.Setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
	t.Setenv("GOOGLE_GENAI_USE_ENTERPRISE", "true")
	t.Setenv("GOOGLE_CLOUD_PROJECT", "p")
	t.Setenv("GOOGLE_CLOUD_LOCATION", "l")
	ask(t, server, open(server, nil), hello())
}

func TestWhatCannotBeSentIsInvalid(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"localhost:1", "ftp://localhost", "http://[", "https://", "https://user:\x7fsecret@host", "ftp://user:secret@host"} {
		_, err := answer(t, gemini.New("m", &gemini.Options{Key: "k", URL: url}), hello())
		wantFailure(t, err, belay.ModelInvalid, "Options.URL")
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error contains a password: %v", err)
		}
	}
	_, err := answer(t, gemini.New("m", &gemini.Options{Key: "key-of-a-test"}), &belay.Request{Tools: []belay.ToolDeclaration{{Name: "look", InputSchema: json.RawMessage("{")}}})
	wantFailure(t, err, belay.ModelInvalid, `tool "look": input schema`)
	for _, model := range []string{"", "a?key=b", "../files"} {
		_, err := answer(t, gemini.New(model, &gemini.Options{Key: "key-of-a-test", URL: "http://127.0.0.1:1"}), hello())
		wantFailure(t, err, belay.ModelInvalid, "model")
	}
}

func TestAnAnsweredConnectionIsUsedAgain(t *testing.T) {
	t.Parallel()
	server := providertest.NewGemini(t, nil)
	wiretest.ConnectionsAreReused(t, func(client *http.Client) belay.Model {
		return open(server, &gemini.Options{HTTPClient: client})
	}, func(model belay.Model) {
		ask(t, server, model, hello())
		server.Script(providertest.Reply{Refusal: &providertest.Refusal{Kind: belay.ModelServer}})
		_, err := answer(t, model, hello())
		wantFailure(t, err, belay.ModelServer, "internal error")
	})
}

// The timeout of an HTTP client covers the whole answer, as in net/http.
func TestTheTimeoutOfTheClientCounts(t *testing.T) {
	t.Parallel()
	server := providertest.NewGemini(t, nil)
	const timeout = 50 * time.Millisecond
	model := open(server, &gemini.Options{HTTPClient: &http.Client{Timeout: timeout}})
	for after := range 2 {
		server.Script(providertest.Reply{Parts: []providertest.Part{providertest.Text("one ", "two")}, Hold: &providertest.Hold{After: after}})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // so that a failing test ends
		start, heard := time.Now(), 0
		for _, err := range model.Stream(ctx, hello()) {
			if err == nil {
				heard++
				continue
			}
			wantFailure(t, err, belay.ModelNetwork, "deadline exceeded")
		}
		cancel()
		if took := time.Since(start); heard != after || took < timeout {
			t.Errorf("heard %d pieces in %v, want %d in %v", heard, took, after, timeout)
		}
	}
}

func TestCheckTools(t *testing.T) {
	t.Parallel()
	model := gemini.New(newer, nil)
	tools := []belay.ToolDeclaration{{Name: "look"}, {Name: "7up"}, {Name: strings.Repeat("long", 30), InputSchema: json.RawMessage(`{"type":"object"}`)}}
	if err := model.CheckTools(tools); err != nil {
		t.Errorf("tools that can be declared: %v", err)
	}
	for _, test := range []struct{ schema, want string }{
		{`{`, "not JSON"},
		{`{"type":"object"} {}`, "text after the end"},
		{`[]`, "the schema must be a JSON object"},
		{`{"type":"string"}`, "type must be object"},
		{`{"type":["string","null"]}`, "type must be object"},
		{`{"enum":[1]}`, "type must be object"},
		{`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}}}`, `"#/$defs/b" points to nothing`},
		{`{"type":"object","properties":{"a":{"$ref":"https://example.com/b"}}}`, `"https://example.com/b" points to nothing`},
		{`{"type":"object","properties":{"a":{"$ref":"#/title"}},"title":"b"}`, `does not point to a schema`},
	} {
		err := model.CheckTools([]belay.ToolDeclaration{{Name: "look"}, {Name: "wait", InputSchema: json.RawMessage(test.schema)}})
		if err == nil || !strings.Contains(err.Error(), `tool "wait": input schema: `) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want the tool and %q", test.schema, err, test.want)
		}
	}
	err := model.CheckTools([]belay.ToolDeclaration{{Name: "look", InputSchema: json.RawMessage(`[]`)}, {}, {Name: "wait", InputSchema: json.RawMessage(`{`)}})
	for _, want := range []string{`tool "look": `, `tool "": the tool has no name`, `tool "wait": `} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("several bad tools: got %v, want %q", err, want)
		}
	}
	err = model.CheckTools([]belay.ToolDeclaration{{Name: "7up"}, {Name: "_7up_be39b1e745"}})
	if err == nil || !strings.Contains(err.Error(), `tool "_7up_be39b1e745"`) || !strings.Contains(err.Error(), `"7up"`) {
		t.Errorf("names that would be one: got %v, want both of them", err)
	}
}
