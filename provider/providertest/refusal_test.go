package providertest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/gemini"
	"github.com/belay-run/belay/provider/openai"
)

// An error quotes the beginning of a long refusal, with an ellipsis at the end. It does not
// cut a character in half.
func TestALongRefusalIsMarkedAsCut(t *testing.T) {
	t.Parallel()
	for provider, open := range map[string]func(url string) belay.Model{
		"anthropic": func(url string) belay.Model {
			return anthropic.New("claude-sonnet-4-5", &anthropic.Options{URL: url, Key: "k"})
		},
		"openai": func(url string) belay.Model { return openai.New("gpt-5.2", &openai.Options{URL: url, Key: "k"}) },
		"gemini": func(url string) belay.Model {
			return gemini.New("gemini-2.5-flash", &gemini.Options{URL: url, Key: "k"})
		},
	} {
		for says, cut := range map[string]bool{"a short word": false, "x" + strings.Repeat("ü", 2_000): true} {
			t.Run(provider+" "+says[:3], func(t *testing.T) {
				t.Parallel()
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/plain")
					w.WriteHeader(http.StatusBadRequest)
					_, _ = w.Write([]byte(says))
				}))
				defer server.Close()
				req := &belay.Request{Messages: []*belay.Message{{Seq: 1, Role: belay.RoleUser, Kind: belay.KindUser, Parts: []belay.Part{belay.Text("go")}}}}
				var failed error
				for _, err := range open(server.URL).Stream(t.Context(), req) {
					failed = err
				}
				if failed == nil || !utf8.ValidString(failed.Error()) || strings.Contains(failed.Error(), "…") != cut || !strings.Contains(failed.Error(), says[:3]) {
					t.Errorf("the error is %v", failed)
				}
			})
		}
	}
}
