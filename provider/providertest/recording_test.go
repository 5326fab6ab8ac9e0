package providertest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/probetest"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/gemini"
	"github.com/belay-run/belay/provider/openai"
	"github.com/belay-run/belay/provider/providertest"
)

// services are test servers that stand for real services, and the providers that use them.
var services = map[string]struct {
	start func(t testing.TB) providertest.Server
	open  func(t testing.TB, address, key string) belay.Model
}{
	"anthropic": {providertest.StartAnthropic, func(_ testing.TB, address, key string) belay.Model {
		return anthropic.New("m", &anthropic.Options{URL: address, Key: key, Provider: "anthropic"})
	}},
	"responses": {providertest.StartResponses, func(_ testing.TB, address, key string) belay.Model {
		return openai.New("m", &openai.Options{URL: address, Key: key, API: openai.Responses, Provider: "p"})
	}},
	"chat": {providertest.StartChat, func(_ testing.TB, address, key string) belay.Model {
		return openai.New("m", &openai.Options{URL: address, Key: key, Provider: "p"})
	}},
	"gemini": {providertest.StartGemini, func(_ testing.TB, address, key string) belay.Model {
		return gemini.New("gemini-3-flash-preview", &gemini.Options{URL: address, Key: key})
	}},
}

// script scripts replies that fit a conversation of TestRecordings.
func script(server providertest.Server, conversation string) {
	text := providertest.Reply{Parts: []providertest.Part{providertest.Text("Guten ", "Morgen, Καλημέρα, おはよう <&>")}}
	calls := providertest.Reply{Parts: []providertest.Part{
		providertest.Thinking("Left, ", "then right."),
		providertest.Call("c1", "look", `{"at":`, `"left"}`), providertest.Call("c2", "look", `{"at":"right"}`),
	}}
	switch conversation {
	case "text":
		server.Script(text, text)
	case "tools", "images":
		server.Script(calls, text)
	case "thinking":
		server.Script(calls, text, text)
	case "bound":
		server.Script(providertest.Reply{Parts: []providertest.Part{providertest.Text("one, two")}, StopReason: belay.StopMaxTokens})
	case "elsewhere":
		server.Script(text)
	}
}

// Recording must work with a server that stands for a real service. Replaying the file must
// work without the server.
func TestRecordAndReplay(t *testing.T) {
	t.Parallel()
	for name, service := range services {
		for _, conversation := range providertest.Conversations() {
			t.Run(name+"/"+conversation, func(t *testing.T) {
				t.Parallel()
				server := service.start(t)
				script(server, conversation)
				dir := t.TempDir()
				providertest.Record(t, dir, conversation, server.URL(), server.Key(), service.open)
				for _, r := range server.Requests() {
					if r.Refused != "" && conversation != "key" {
						t.Errorf("the service refused a request: %s", r.Refused)
					}
				}
				file := filepath.Join(dir, conversation+".json")
				data, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(data), server.Key()) || strings.Contains(string(data), "not-a-key") {
					t.Errorf("a key is in the recording:\n%s", data)
				}
				server.Close() // Replay must need only the file
				providertest.Replay(t, file, service.open)
			})
		}
	}
}

func TestReplayFindsFaults(t *testing.T) {
	t.Parallel()
	service := services["responses"]
	server := service.start(t)
	dir := t.TempDir()
	script(server, "tools")
	providertest.Record(t, dir, "tools", server.URL(), server.Key(), service.open)
	file := filepath.Join(dir, "tools.json")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		rule string
		edit func(string) string
		want string
	}{
		{"another answer gives another response", func(s string) string { return strings.Replace(s, "Morgen", "Tag", 1) }, "other outcomes"},
		{"a conversation that no longer exists is reported", func(s string) string {
			return strings.Replace(s, `"conversation": "tools"`, `"conversation": "gone"`, 1)
		}, "delete the file"},
		{"a file that is not a recording is reported", func(string) string { return "{" }, "not a recording"},
		{"another path is reported", func(s string) string { return strings.Replace(s, "/v1/responses", "/v1/elsewhere", 1) }, "was recorded as"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			edited := filepath.Join(t.TempDir(), "tools.json")
			if err := os.WriteFile(edited, []byte(test.edit(string(data))), 0o600); err != nil {
				t.Fatal(err)
			}
			probetest.Run(t, func(t testing.TB) { providertest.Replay(t, edited, service.open) }).WantFailure(t, test.want)
		})
	}
	t.Run("a provider that changed is reported", func(t *testing.T) {
		t.Parallel()
		probetest.Run(t, func(t testing.TB) {
			providertest.Replay(t, file, func(t testing.TB, address, key string) belay.Model {
				return responding(func(r *belay.Response) { r.Usage.Out++ })(service.open(t, address, key))
			})
		}).WantFailure(t, "other outcomes")
	})
}

// If a model does not do what a conversation requires, no file is written.
func TestARecordingThatWentWrongIsNotWritten(t *testing.T) {
	t.Parallel()
	service := services["chat"]
	server := service.start(t)
	server.Script(providertest.Reply{Parts: []providertest.Part{providertest.Text("No.")}})
	dir := t.TempDir()
	probetest.Run(t, func(t testing.TB) {
		providertest.Record(t, dir, "tools", server.URL(), server.Key(), service.open)
	}).WantFailure(t, "called no tool")
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("got %v, %v, want no file", files, err)
	}
}

func TestScrub(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"the key is my-very-own-key.":                "the key is [key].",
		"Incorrect API key provided: sk-pro****abcd": "Incorrect API key provided: [key]",
		"org-AbCdEfGhIjKlMnOpQrStUvWx is not known":  "[key] is not known",
		"a user-friendly org-chart":                  "a user-friendly org-chart",
	} {
		if got := providertest.Scrub(text, "my-very-own-key"); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
