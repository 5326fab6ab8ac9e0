package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/provider/providertest"
)

// lastAsked returns the name of the model in the last request.
func lastAsked(t *testing.T, server providertest.Server) string {
	t.Helper()
	requests := server.Requests()
	var body struct {
		Model string `json:"model"`
	}
	if err := json.Unmarshal(requests[len(requests)-1].Body, &body); err != nil {
		t.Fatal(err)
	}
	return body.Model
}

// A session remembers its model. --model overrides the model for one turn, and Belay prints
// a remark. If the settings have no model, Belay uses the model of the session.
//
// SPEC D-04
func TestFlagsComeBeforeTheModelThatIsKept(t *testing.T) {
	t.Parallel()
	server := providertest.NewChat(t, &providertest.ChatOptions{Key: aKey})
	d := newDesk(t, nil)
	d.environ = []string{"WORK_LOGIN=" + aKey}
	d.write(map[string]string{config.Name: "providers:\n  work: {url: \"" + server.URL() + "\", key_env: WORK_LOGIN}\n"})
	ask := func(want string, args ...string) {
		t.Helper()
		server.Script(providertest.Reply{Parts: []providertest.Part{providertest.Text("Yes.")}})
		d.must(append([]string{"run"}, args...)...)
		if got := lastAsked(t, server); got != want {
			t.Errorf("%v: %s was asked, want %s", args, got, want)
		}
	}
	ask("model-of-a-test", "--as", "s", "--model", "work/model-of-a-test", "hello")
	d.must("run", "--session", "s", "--model", "work/model-of-a-test", "/model work/another-model")
	contains(t, d.out.String(), "The model is work/another-model from now on.")
	ask("another-model", "--session", "s", "and now?")
	ask("model-of-a-test", "--session", "s", "--model", "work/model-of-a-test", "and now?")
	contains(t, d.err.String(), "model: work/model-of-a-test (--model); later turns of the session use work/another-model")
	ask("another-model", "--continue", "and now?")
	if strings.Contains(d.err.String(), "keeps") {
		t.Errorf("what goes as expected is told: %s", &d.err)
	}
	d.environ = append(d.environ, "BELAY_MODEL=work/model-of-a-test")
	ask("another-model", "--continue", "and now?")
	d.must("run", "--continue", "/model -")
	contains(t, d.out.String(), "The model is work/model-of-a-test from now on.")
	ask("model-of-a-test", "--continue", "and now?")
	d.environ = d.environ[:1]
	if code := d.run("run", "--continue", "and now?"); code != exitUsage || !strings.Contains(d.err.String(), "belay run --model work/NAME") {
		t.Errorf("without any model: %d, %s", code, &d.err)
	}
}

// A session remembers a model only if the model can be used.
//
// SPEC D-04
func TestModelsAreCheckedBeforeTheyAreKept(t *testing.T) {
	t.Parallel()
	var names string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/models":
			_, _ = w.Write([]byte(names))
		case "/refuses/models":
			http.Error(w, `{"error":{"message":"no such key"}}`, http.StatusUnauthorized)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	names = `{"data":[{"id":"qwen3:latest"},{"id":"llama3.3:70b"},{"id":"claude-of-a-test-20260101"},{"id":"vendor/model"}]}`
	d := newDesk(t, map[string]string{"s.yaml": "repeat: true\nsteps: [{text: Fine.}]\n"})
	d.environ = []string{"WORK_LOGIN=" + aKey}
	d.write(map[string]string{config.Name: "providers:\n" +
		"  ollama: {url: \"" + server.URL + "/v1\", models: {unlisted: {window: 5}}}\n" +
		"  openrouter: {url: \"" + server.URL + "/v1\"}\n" +
		"  silent: {url: \"" + server.URL + "/nothing\"}\n" +
		"  locked: {url: \"" + server.URL + "/refuses\"}\n" +
		"  wrong: {url: \"" + server.URL + "/refuses\", key_env: WORK_LOGIN}\n" +
		"  gone: {url: \"http://127.0.0.1:1\"}\n"})
	for _, test := range []struct{ rule, model, problem string }{
		{"one that is listed", "ollama/llama3.3:70b", ""},
		{"one that is listed as the latest", "ollama/qwen3", ""},
		{"one that is listed with its date", "ollama/claude-of-a-test", ""},
		{"a way to serve one that is listed", "openrouter/vendor/model:free", ""},
		{"one that the settings know", "ollama/unlisted", ""},
		{"a server that lists nothing", "silent/any", ""},
		{"one that is not there", "ollama/none", `ollama, at ` + server.URL + `/v1, has no model "none": ` + "`belay models ollama --check` lists"},
		{"one that is near", "ollama/qwen4", `has no model "qwen4"`},
		{"another size of one", "ollama/llama3.3:8b", `has no model "llama3.3:8b"`},
		{"a server that is not there", "gone/any", "gone does not answer at http://127.0.0.1:1: no program listens at 127.0.0.1:1: start the server"},
		{"a key that is wanted", "locked/any", "needs a key: set key_env or key_file under providers.locked"},
		{"a key that is refused", "wrong/any", "wrong refuses the key sk-…cdef from WORK_LOGIN: "},
	} {
		code := d.run("run", d.model(), "/model "+test.model)
		if test.problem == "" && code != exitOK || test.problem != "" && (code == exitOK || !strings.Contains(d.err.String(), test.problem)) {
			t.Errorf("%s: exit code %d, want %q: %s", test.rule, code, test.problem, &d.err)
		}
		if strings.Contains(d.err.String(), aKey) {
			t.Errorf("%s: the key is told: %s", test.rule, &d.err)
		}
	}
}

// The error for a wrong model name or address says what to do.
func TestFailuresAdvise(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, kind, body string
		status           int
		want             string
	}{
		{"a model that there is not", config.KindChat, `{"error":{"message":"model \"m\" not found, try pulling it first"}}`, 404, "; `belay models work --check` lists its models"},
		{"one that OpenRouter does not have", config.KindChat, `{"error":{"message":"m is not a valid model ID"}}`, 400, "; `belay models work --check` lists its models"},
		{"one that Claude does not have", config.KindAnthropic, `{"type":"error","error":{"type":"not_found_error","message":"model: m"}}`, 404, "; `belay models work --check` lists its models"},
		{"a server that does not know Responses", config.KindOpenAI, `404 page not found`, 404, "; if the server does not have the Responses API, set kind: openai-chat under providers.work in the user's belay.yaml"},
		{"an address where nothing is", config.KindChat, `404 page not found`, 404, "; check that http://127.0.0.1:"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, test.body, test.status) }))
			defer server.Close()
			d := newDesk(t, nil)
			d.write(map[string]string{config.Name: "providers:\n  work: {kind: " + test.kind + ", url: \"" + server.URL + "\"}\n"})
			if code := d.run("run", "--model", "work/m", "hello"); code != exitFailed || !strings.Contains(d.err.String(), test.want) {
				t.Errorf("exit code %d, want %q: %s", code, test.want, &d.err)
			}
		})
	}
}
