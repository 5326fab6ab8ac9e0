package openai_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wiretest"
	"github.com/belay-run/belay/provider/openai"
	"github.com/belay-run/belay/provider/providertest"
)

func TestInfo(t *testing.T) {
	t.Parallel()
	gpt52 := belay.Price{In: 1.75, Out: 14, CacheRead: 0.175, CacheWrite: 1.75}
	for _, test := range []struct {
		rule  string
		model string
		opts  *openai.Options
		want  belay.ModelInfo
	}{
		{"a listed model is known", "gpt-5.2", nil, belay.ModelInfo{Name: "openai/gpt-5.2", Window: 400_000, MaxOutput: 128_000, Price: gpt52}},
		{"a name with its date is known", "gpt-5.2-2025-12-11", nil, belay.ModelInfo{Name: "openai/gpt-5.2-2025-12-11", Window: 400_000, MaxOutput: 128_000, Price: gpt52}},
		{"the latest of a name is known", "gpt-5.2-latest", nil, belay.ModelInfo{Name: "openai/gpt-5.2-latest", Window: 400_000, MaxOutput: 128_000, Price: gpt52}},
		{"writing to the cache may cost more", "gpt-5.6-luna", nil, belay.ModelInfo{Name: "openai/gpt-5.6-luna", Window: 1_050_000, MaxOutput: 128_000, Price: belay.Price{In: 1, Out: 6, CacheRead: 0.1, CacheWrite: 1.25}}},
		{"the table has two columns for reading", "o3", nil, belay.ModelInfo{Name: "openai/o3", Window: 200_000, MaxOutput: 50_000, Price: belay.Price{In: 2, Out: 8, CacheRead: 0.5, CacheWrite: 2}}},
		{"without a price of its own reading costs as much as any token", "gpt-5.5-pro", nil, belay.ModelInfo{Name: "openai/gpt-5.5-pro", Window: 1_050_000, MaxOutput: 128_000, Price: belay.Price{In: 30, Out: 180, CacheRead: 30, CacheWrite: 30}}},
		{"a model that is not listed has its name", "gpt-of-tomorrow", nil, belay.ModelInfo{Name: "openai/gpt-of-tomorrow"}},
		{"options overrule", "gpt-5.2", &openai.Options{Window: 1000, Price: belay.Price{In: 6}}, belay.ModelInfo{Name: "openai/gpt-5.2", Window: 1000, MaxOutput: 128_000, Price: belay.Price{In: 6}}},
		{"a local server has its host for a name", "llama3.2", &openai.Options{URL: "http://localhost:11434/v1"}, belay.ModelInfo{Name: "localhost:11434/llama3.2"}},
		{"a provider finds the model in the table", "deepseek-v4-pro", &openai.Options{URL: "http://localhost:1/v1", Provider: "deepseek"}, belay.ModelInfo{Name: "deepseek/deepseek-v4-pro", Window: 1_000_000, MaxOutput: 384_000, Price: belay.Price{In: 0.435, Out: 0.87, CacheRead: 0.003625, CacheWrite: 0.435}}},
		{"so does an address that is listed", "deepseek-v4-pro", &openai.Options{URL: "https://api.deepseek.com"}, belay.ModelInfo{Name: "api.deepseek.com/deepseek-v4-pro", Window: 1_000_000, MaxOutput: 384_000, Price: belay.Price{In: 0.435, Out: 0.87, CacheRead: 0.003625, CacheWrite: 0.435}}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, openai.New(test.model, test.opts).Info()); diff != "" {
				t.Errorf("info (-want +got):\n%s", diff)
			}
		})
	}
}

// trap is a transport that records a request and does not send it.
type trap struct {
	url    string
	key    string
	header http.Header
}

func (c *trap) RoundTrip(r *http.Request) (*http.Response, error) {
	c.url, c.key, c.header = r.URL.String(), r.Header.Get("Authorization"), r.Header
	return nil, errors.New("trapped")
}

// A server that is not OpenAI's gets nothing from the environment: no key, no header, no
// address.
//
//nolint:paralleltest // it changes the environment
func TestWhereRequestsGo(t *testing.T) {
	for name, value := range map[string]string{
		"OPENAI_API_KEY": "key-of-openai", "OPENAI_ADMIN_KEY": "key-of-admin", "OPENAI_BASE_URL": "https://evil.example/v1",
		"OPENAI_ORG_ID": "org-mine", "OPENAI_PROJECT_ID": "proj-mine", "OPENAI_CUSTOM_HEADERS": "X-Secret: mine",
	} {
		t.Setenv(name, value)
	}
	for _, test := range []struct {
		rule     string
		opts     openai.Options
		url, key string
	}{
		{"OpenAI gets the environment's key", openai.Options{}, "https://api.openai.com/v1/responses", "Bearer key-of-openai"},
		{"or the one it is given", openai.Options{Key: "mine"}, "https://api.openai.com/v1/responses", "Bearer mine"},
		{"OpenAI's address is OpenAI", openai.Options{URL: "https://api.openai.com/v1/"}, "https://api.openai.com/v1/responses", "Bearer key-of-openai"},
		{"OpenAI speaks both", openai.Options{API: openai.Chat}, "https://api.openai.com/v1/chat/completions", "Bearer key-of-openai"},
		{"Ollama gets none", openai.Options{URL: "http://localhost:11434/v1"}, "http://localhost:11434/v1/chat/completions", ""},
		{"an address without a path gets one", openai.Options{URL: "http://localhost:8080"}, "http://localhost:8080/v1/chat/completions", ""},
		{"OpenRouter gets its own", openai.Options{URL: "https://openrouter.ai/api/v1", Key: "theirs"}, "https://openrouter.ai/api/v1/chat/completions", "Bearer theirs"},
		{"others may speak Responses", openai.Options{URL: "http://localhost:8000/v1", API: openai.Responses}, "http://localhost:8000/v1/responses", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var c trap
			o := test.opts
			o.HTTPClient = &http.Client{Transport: &c}
			_, err := answer(t, openai.New("m", &o), hello())
			_ = wantFailure(t, err, belay.ModelNetwork, "trapped")
			if c.url != test.url || c.key != test.key {
				t.Errorf("it went to %s with %q, want %s with %q", c.url, c.key, test.url, test.key)
			}
			for name, values := range c.header {
				if name != "Authorization" && strings.Contains(strings.Join(values, ""), "mine") {
					t.Errorf("the environment's %s was sent", name)
				}
			}
		})
	}
}

func TestWithoutAKeyNothingIsSent(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	var c trap
	_, err := answer(t, openai.New("m", &openai.Options{HTTPClient: &http.Client{Transport: &c}}), hello())
	_ = wantFailure(t, err, belay.ModelAuth, "OPENAI_API_KEY")
	if c.url != "" {
		t.Errorf("a request was sent to %s", c.url)
	}
}

func TestWhatCannotBeSentIsInvalid(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		opts openai.Options
		want string
	}{
		{openai.Options{URL: "localhost:1"}, "Options.URL"},
		{openai.Options{URL: "ftp://localhost"}, "Options.URL"},
		{openai.Options{URL: "http://["}, "Options.URL"},
		{openai.Options{URL: "https://"}, "Options.URL"},
		{openai.Options{URL: "https://user:secret@"}, "Options.URL"},
		{openai.Options{URL: "https://user:sec\x7fret:secret@host/v1"}, "Options.URL"},
		{openai.Options{URL: "https://localhost/v1?key=1"}, "Options.URL"},
		{openai.Options{API: "telepathy"}, "Options.API"},
		{openai.Options{Extra: json.RawMessage(`[]`)}, "Options.Extra"},
		{openai.Options{Extra: json.RawMessage(`{`)}, "Options.Extra"},
		{openai.Options{Extra: json.RawMessage(`{"stream":false}`)}, `"stream"`},
		{openai.Options{Extra: json.RawMessage(`{"reasoning":{}}`)}, `"reasoning"`},
	} {
		o := test.opts
		o.Key = "k"
		_, err := answer(t, openai.New("m", &o), hello())
		_ = wantFailure(t, err, belay.ModelInvalid, test.want)
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error contains a password: %v", err)
		}
	}
}

// fields returns the fields of a request as JSON, without the model, tools and messages.
func fields(t testing.TB, body []byte) string {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"model", "input", "messages", "tools", "stream"} {
		delete(all, name)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSettingsAreSent(t *testing.T) {
	t.Parallel()
	const usage = `"stream_options":{"include_usage":true}`
	for _, test := range []struct {
		rule  string
		model string
		opts  openai.Options
		bound int // MaxTokens of the request
		want  string
	}{
		{"nothing is stored", "m", openai.Options{API: openai.Responses}, 0, `{"store":false}`},
		{"a bound of the request counts", "m", openai.Options{API: openai.Responses, MaxTokens: 7000}, 500, `{"max_output_tokens":500,"store":false}`},
		{"else the model's", "m", openai.Options{API: openai.Responses, MaxTokens: 7000}, 0, `{"max_output_tokens":7000,"store":false}`},
		{"a bound that is too small is the smallest", "m", openai.Options{API: openai.Responses}, 5, `{"max_output_tokens":16,"store":false}`},
		{"a model that thinks hands its thinking out", "gpt-5.2", openai.Options{API: openai.Responses, Provider: "openai"}, 0, `{"include":["reasoning.encrypted_content"],"store":false}`},
		{"one that does not has none", "gpt-4.1", openai.Options{API: openai.Responses, Provider: "openai"}, 0, `{"store":false}`},
		{"setting an effort means thinking", "m", openai.Options{API: openai.Responses, Effort: "low", Summary: "auto"}, 0, `{"include":["reasoning.encrypted_content"],"reasoning":{"effort":"low","summary":"auto"},"store":false}`},
		{"extra fields are added", "m", openai.Options{API: openai.Responses, Extra: json.RawMessage(`{"service_tier": "flex", "text": {"verbosity": "low"}}`)}, 0, `{"service_tier":"flex","store":false,"text":{"verbosity":"low"}}`},
		{"Chat is asked for usage", "m", openai.Options{API: openai.Chat}, 0, `{` + usage + `}`},
		{"other servers know the older bound", "m", openai.Options{API: openai.Chat}, 5, `{"max_tokens":5,` + usage + `}`},
		{"Chat has a field for effort", "m", openai.Options{API: openai.Chat, Effort: "high", Extra: json.RawMessage(`{"seed":7}`)}, 0, `{"reasoning_effort":"high","seed":7,` + usage + `}`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			server := providertest.StartResponses(t)
			if test.opts.API == openai.Chat {
				server = providertest.StartChat(t)
			}
			o := test.opts
			o.URL, o.Key = server.URL(), server.Key()
			req := hello()
			req.MaxTokens = test.bound
			if got := fields(t, ask(t, server, openai.New(test.model, &o), req).Body); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// bodies is a transport that sends OpenAI's requests to a test server.
type bodies struct{ server *providertest.Chat }

func (b bodies) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = "http", strings.TrimSuffix(strings.TrimPrefix(b.server.URL(), "http://"), "/v1"), ""
	return http.DefaultTransport.RoundTrip(r)
}

func TestOpenAIItselfKnowsTheNewerBound(t *testing.T) {
	t.Parallel()
	server := providertest.NewChat(t, nil)
	req := hello()
	req.MaxTokens = 500
	model := openai.New("m", &openai.Options{API: openai.Chat, Key: server.Key(), HTTPClient: &http.Client{Transport: bodies{server}}})
	if got := fields(t, ask(t, server, model, req).Body); !strings.Contains(got, `"max_completion_tokens":500`) {
		t.Errorf("got %s, want max_completion_tokens", got)
	}
}

func TestAnAnsweredConnectionIsUsedAgain(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, api openai.API, server providertest.Server) {
		wiretest.ConnectionsAreReused(t, func(client *http.Client) belay.Model {
			return open(server, &openai.Options{API: api, HTTPClient: client})
		}, func(model belay.Model) { ask(t, server, model, hello()) })
	})
}

func TestFilesAreSentAsTheyCanBeShown(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, api openai.API, server providertest.Server) {
		media := []belay.Media{
			{MIME: "image/webp", Data: []byte("webp")},
			{MIME: "image/png", URL: "https://example.com/a.png"},
			{MIME: "application/pdf", Name: "a.pdf", Data: []byte("pdf")},
			{MIME: "application/pdf", Data: []byte("pdf")},
			{MIME: "text/markdown", Name: "a.md", Data: []byte("# A")},
		}
		m := message(belay.RoleUser)
		for i := range media {
			m.Parts = append(m.Parts, belay.Part{Type: belay.PartMedia, Media: &media[i]})
		}
		m.Parts = append(m.Parts, belay.File("a.zip", "application/zip", []byte("zip")), belay.File("empty.txt", "text/plain", nil))
		r := ask(t, server, open(server, &openai.Options{API: api}), &belay.Request{Messages: []*belay.Message{m}})
		want := []belay.Part{
			belay.Image("image/webp", []byte("webp")),
			{Type: belay.PartMedia, Media: &belay.Media{URL: "https://example.com/a.png"}},
			belay.File("a.pdf", "application/pdf", []byte("pdf")),
			belay.File("file.pdf", "application/pdf", []byte("pdf")),
			belay.Text("<file name=\"a.md\">\n# A\n</file>"),
			belay.Text(`[A file that cannot be shown: name "a.zip", type "application/zip", 3 bytes, address ""]`),
			belay.Text(`[A file that cannot be shown: name "empty.txt", type "text/plain", 0 bytes, address ""]`),
		}
		if diff := cmp.Diff(want, r.Messages[0].Parts); diff != "" {
			t.Errorf("parts (-want +got):\n%s", diff)
		}
	})
	t.Run("Responses fetches documents", func(t *testing.T) {
		t.Parallel()
		server := providertest.StartResponses(t)
		m := message(belay.RoleUser, belay.Part{Type: belay.PartMedia, Media: &belay.Media{MIME: "application/pdf", URL: "https://example.com/a.pdf"}})
		r := ask(t, server, open(server, &openai.Options{API: openai.Responses}), &belay.Request{Messages: []*belay.Message{m}})
		if !slices.ContainsFunc(r.Messages[0].Parts, func(p belay.Part) bool { return p.Media != nil && p.Media.URL == "https://example.com/a.pdf" }) {
			t.Errorf("got %+v, want the address of the document", r.Messages[0].Parts)
		}
	})
}
