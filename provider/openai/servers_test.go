package openai_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/openai"
	"github.com/belay-run/belay/provider/providertest"
)

// SPEC L-04
func TestHowLongToWait(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule    string
		headers map[string]string
		message string
		want    time.Duration
	}{
		{"milliseconds are exact", map[string]string{"Retry-After-Ms": "1250", "Retry-After": "2"}, "slow", 1250 * time.Millisecond},
		{"nonsense is none", map[string]string{"Retry-After-Ms": "soon", "Retry-After": "2"}, "slow", 2 * time.Second},
		{"nobody waits for a year", map[string]string{"Retry-After-Ms": "99999999999999999"}, "slow", 24 * time.Hour},
		{"without a header the message may say it", nil, "Rate limit reached. Please try again in 1.5s.", 1500 * time.Millisecond},
		{"a header comes before the message", map[string]string{"Retry-After": "7"}, "Please try again in 1.5s.", 7 * time.Second},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for name, value := range test.headers {
					w.Header().Set(name, value)
				}
				w.Header().Set("Content-Type", jsonType)
				w.WriteHeader(http.StatusTooManyRequests)
				_, _ = io.WriteString(w, `{"error":{"message":"`+test.message+`"}}`)
			}))
			t.Cleanup(server.Close)
			_, err := answer(t, openai.New("m", &openai.Options{URL: server.URL}), hello())
			if e := wantFailure(t, err, belay.ModelRateLimited, test.message); e.RetryAfter != test.want {
				t.Errorf("got %v, want %v", e.RetryAfter, test.want)
			}
		})
	}
}

// Mistral accepts only call ids of nine letters and digits. The templates of its models on
// other servers have the same limit.
func TestMistralGetsShortIDs(t *testing.T) {
	t.Parallel()
	ids := regexp.MustCompile(`"(?:id|tool_call_id)":"([^"]*)"`)
	req := &belay.Request{Messages: []*belay.Message{
		user("look"),
		message(belay.RoleAssistant, called("toolu_01A09q90qw90lq917835lq9", "look", `{}`), called("D681PevKs", "look", `{}`), called("toolu_01A09q90qw90lq917835lq8", "look", `{}`)),
		message(belay.RoleUser, result("toolu_01A09q90qw90lq917835lq9", "look", belay.Result{Text: "a"}), result("D681PevKs", "look", belay.Result{Text: "b"}), result("toolu_01A09q90qw90lq917835lq8", "look", belay.Result{Text: "c"})),
	}}
	for name, short := range map[string]bool{"mistral-large-latest": true, "Devstral-Small": true, "open-mixtral-8x22b": true, "qwen3": false} {
		server := providertest.NewChat(t, nil)
		r := ask(t, server, openai.New(name, &openai.Options{URL: server.URL(), Key: server.Key()}), req)
		seen := map[string]int{}
		for _, found := range ids.FindAllStringSubmatch(string(r.Body), -1) {
			seen[found[1]]++
			if fits := regexp.MustCompile(`^[a-zA-Z0-9]{9}$`).MatchString(found[1]); short && !fits {
				t.Errorf("%s got the id %q", name, found[1])
			}
		}
		if len(seen) != 3 || seen["D681PevKs"] != 2 {
			t.Errorf("%s got the ids %v, want three, each of a call and its result, and its own as it was", name, seen)
		}
		if !short && seen["toolu_01A09q90qw90lq917835lq9"] != 2 {
			t.Errorf("%s got the ids %v, want them as they were", name, seen)
		}
	}
}

// DeepSeek and Moonshot reject a conversation if a message of the model has no thinking.
// Messages of other models have no thinking.
func TestServersThatWantThoughtsGetThem(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		url, provider string
		want          int
	}{
		{"https://api.deepseek.com/v1", "", 2},
		{"https://api.moonshot.ai/v1", "", 2},
		{"https://api.moonshot.cn/v1", "mine", 2},
		{"https://gateway.example/v1", "deepseek", 2},
		{"https://notdeepseek.com/v1", "", 0},
		{"http://localhost:11434/v1", "", 0},
	} {
		var sent []byte
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			sent, _ = io.ReadAll(r.Body) // the body is in memory, so there is no error
			return nil, io.ErrUnexpectedEOF
		})}
		model := openai.New("m", &openai.Options{URL: test.url, Provider: test.provider, Key: "k", HTTPClient: client})
		theirs := belay.Part{Type: belay.PartThinking, Text: "a foreign thought", Provider: "elsewhere"}
		mine := belay.Part{Type: belay.PartThinking, Text: "Right.", Provider: strings.Split(model.Info().Name, "/")[0], Opaque: json.RawMessage(`{"field":"reasoning_content"}`)}
		_, _ = answer(t, model, &belay.Request{Messages: []*belay.Message{ // the error is expected, because the client fails
			user("look"), message(belay.RoleAssistant, theirs, called("c1", "look", `{}`)), message(belay.RoleUser, result("c1", "look", belay.Result{Text: "a door"})),
			said("A door."), user("and?"), message(belay.RoleAssistant, mine, belay.Text("A garden.")), user("so?"),
		}})
		if n := strings.Count(string(sent), `"reasoning_content":" "`); n != test.want {
			t.Errorf("%s of %q: %d messages have empty thinking, want %d: %s", test.url, test.provider, n, test.want, sent)
		}
		if !strings.Contains(string(sent), `"reasoning_content":"Right."`) || strings.Contains(string(sent), "foreign") {
			t.Errorf("%s: the model does not get back exactly its own thinking: %s", test.url, sent)
		}
	}
}

// roundTrip makes a transport from a function.
type roundTrip func(r *http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// OpenAI rejects thinking for a model that does not think. So a request to such a model
// leaves out the thinking of a newer model that the session used before.
func TestThinkingIsForModelsThatThink(t *testing.T) {
	t.Parallel()
	conversations := map[string]*belay.Request{}
	for _, provider := range []string{"openai", "elsewhere"} {
		thought := belay.Part{Type: belay.PartThinking, Provider: provider, Opaque: json.RawMessage(`{"id":"rs_1","encrypted":"secret"}`)}
		conversations[provider] = &belay.Request{Messages: []*belay.Message{user("a"), message(belay.RoleAssistant, thought, belay.Text("b")), user("c")}}
	}
	for _, test := range []struct {
		model, provider string
		want            bool
	}{
		{"gpt-5.2", "openai", true},
		{"gpt-4.1", "openai", false},
		{"gpt-of-tomorrow", "openai", true},
		{"gpt-5.2", "openai", true}, // gpt-5.2 must not use the encoding that gpt-4.1 cached
		{"gpt-4.1", "elsewhere", true},
	} {
		req := conversations[test.provider]
		sent := ""
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			sent = string(body)
			w.Header().Set("Content-Type", jsonType)
			_, _ = io.WriteString(w, `{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}]}`)
		}))
		if _, err := answer(t, openai.New(test.model, &openai.Options{URL: server.URL, API: openai.Responses, Provider: test.provider}), req); err != nil {
			t.Error(err)
		}
		server.Close()
		if got := strings.Contains(sent, "secret"); got != test.want {
			t.Errorf("%s of %s: thinking is sent: %t, want %t", test.model, test.provider, got, test.want)
		}
	}
}
