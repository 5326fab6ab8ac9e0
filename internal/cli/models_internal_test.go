package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/inspect"
)

// offered runs "models --json" and returns the providers by name.
func (d *desk) offered(code int, args ...string) map[string]inspect.Provider {
	d.t.Helper()
	if got := d.run(append([]string{"models", "--json"}, args...)...); got != code {
		d.t.Fatalf("exit code %d, want %d: %s", got, code, &d.err)
	}
	var o inspect.Models
	if err := json.Unmarshal(d.out.Bytes(), &o); err != nil {
		d.t.Fatal(err)
	}
	all := make(map[string]inspect.Provider)
	for i := range o.Providers {
		all[o.Providers[i].Name] = o.Providers[i]
	}
	return all
}

// noServers sets the URLs of local servers to addresses where nothing listens.
var noServers = []string{
	"BELAY_PROVIDERS_OLLAMA_URL=http://127.0.0.1:1", "BELAY_PROVIDERS_LLAMA_CPP_URL=http://127.0.0.1:1",
	"BELAY_PROVIDERS_VLLM_URL=http://127.0.0.1:1", "BELAY_PROVIDERS_LMSTUDIO_URL=http://127.0.0.1:1",
}

// Servers of every kind list their models.
func TestModelsAreChecked(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	settings := "providers:\n"
	for kind, start := range servers {
		settings += "  my-" + kind + ": {kind: " + kind + ", url: \"" + start(t, aKey).URL() + "\", key_env: MY_LOGIN, models: {model-of-a-test: {window: 4096, price: {in: 1, out: 2}}}}\n"
	}
	d.write(map[string]string{config.Name: settings})
	d.environ = append([]string{"MY_LOGIN=" + aKey}, noServers...)
	all := d.offered(exitFailed, "--check") // noServers makes the local servers configured but not reachable
	for kind := range servers {
		p := all["my-"+kind]
		if p.Status != found || p.Reachable == nil || !*p.Reachable || p.Key != "sk-…cdef" || p.KeyFrom != "MY_LOGIN" {
			t.Errorf("%s: %+v", kind, p)
		}
		contains(t, p.Detail, "key sk-…cdef from MY_LOGIN, at http://127.0.0.1:", ", answered in ", " with 2 models")
		want := []belay.ModelInfo{
			{Name: "my-" + kind + "/model-of-a-test", Window: 4096, Price: belay.Price{In: 1, Out: 2, CacheRead: 1, CacheWrite: 1}},
			{Name: "my-" + kind + "/another-model"},
		}
		if diff := cmp.Diff(want, p.Models); diff != "" {
			t.Errorf("models of %s (-want +got):\n%s", kind, diff)
		}
	}
	if p := all["ollama"]; p.Status != broken || p.Reachable == nil || *p.Reachable || !strings.Contains(p.Detail, "no answer: no program listens at 127.0.0.1:1: start the server") {
		t.Errorf("a server that is set and not there: %+v", p)
	}
	if p := all["openai"]; p.Status != missing || p.Reachable != nil || p.Models != nil {
		t.Errorf("a vendor without a key: %+v", p)
	}
	if strings.Contains(d.out.String()+d.err.String(), aKey) {
		t.Error("the key is told")
	}
}

// Belay reports the problems of a server within the timeout.
func TestModelsThatCannotBeListed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, environ string
		serve         http.HandlerFunc
		reachable     bool
		want          string
	}{
		{"a server that does not answer in time", "", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, false, "no answer within 50ms"},
		{"a key that is refused", "WORK_LOGIN=" + aKey, func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, `{"error":{"message":"no such key: `+r.Header.Get("Authorization")+`"}}`, http.StatusUnauthorized)
		}, true, "and the provider refuses the key: "},
		{"a key that is wanted", "", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{}`, http.StatusUnauthorized) }, true, "no key is sent, at "},
		{"something else that answers", "", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, true, "answers, but not with a list of models"},
		{"nothing at that path", "", http.NotFound, true, "answers, but not with a list of models"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(test.serve)
			t.Cleanup(func() {
				server.CloseClientConnections()
				server.Close()
			})
			d := newDesk(t, nil)
			entry := "url: \"" + server.URL + "\""
			if test.environ != "" {
				entry += ", key_env: WORK_LOGIN"
			}
			d.write(map[string]string{config.Name: "providers: {work: {" + entry + "}}\n"})
			d.environ = []string{test.environ, "OPENAI_API_KEY=" + aKey}
			timeout := "1m"
			if !test.reachable {
				timeout = "50ms"
			}
			p := d.offered(exitFailed, "work", "--check", "--timeout", timeout)["work"]
			if p.Status != broken || p.Reachable == nil || *p.Reachable != test.reachable || !strings.Contains(p.Detail, test.want) {
				t.Errorf("got %+v, want %q", p, test.want)
			}
			if strings.Contains(d.out.String()+d.err.String(), aKey) {
				t.Errorf("the key is told: %s", &d.out)
			}
		})
	}
}

// A server that needs no key gets none, even if the environment has one.
func TestNoKeyIsSentUnasked(t *testing.T) {
	t.Parallel()
	headers := make(chan http.Header, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers <- r.Header
		_, _ = w.Write([]byte(`{"data":[{"id":"qwen3:8b"}]}`))
	}))
	defer server.Close()
	d := newDesk(t, nil)
	d.environ = []string{"OPENAI_API_KEY=" + aKey, "BELAY_PROVIDERS_OLLAMA_URL=" + server.URL}
	p := d.offered(exitOK, "ollama", "--check")["ollama"]
	if got := (<-headers).Get("Authorization"); got != "" || p.Key != "" || p.NeedsKey {
		t.Errorf("it got %q: %+v", got, p)
	}
	if diff := cmp.Diff([]belay.ModelInfo{{Name: "ollama/qwen3:8b"}}, p.Models); diff != "" {
		t.Error(diff)
	}
}

// Without --check, Belay sends no request and lists the models it knows.
func TestModelsAreListed(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s was sent", r.Method, r.URL) }))
	defer server.Close()
	d := newDesk(t, nil)
	d.write(map[string]string{config.Name: "model: work/mine\nproviders:\n  work: {url: \"" + server.URL + "\", window: 9}\n  openai: {models: {gpt-5.2: {window: 7}}}\n"})
	d.environ = []string{"OPENAI_API_KEY=" + aKey, "OPENROUTER_API_KEY=" + aKey, "BELAY_PROVIDERS_ANTHROPIC_URL=" + server.URL}
	all := d.offered(exitOK)
	if diff := cmp.Diff([]belay.ModelInfo{{Name: "work/mine", Window: 9}}, all["work"].Models); diff != "" {
		t.Error(diff)
	}
	windows := make(map[string]int)
	for _, m := range append(all["openai"].Models, all["openrouter"].Models...) {
		windows[m.Name] = m.Window
	}
	if windows["openai/gpt-5.2"] != 7 || windows["openai/gpt-5"] == 0 || windows["openrouter/anthropic/claude-sonnet-4.5"] == 0 {
		t.Errorf("gpt-5.2 has %d, gpt-5 %d", windows["openai/gpt-5.2"], windows["openai/gpt-5"])
	}
	if p := all["gemini"]; p.Status != missing || p.Models != nil {
		t.Errorf("a vendor without a key: %+v", p)
	}
	if p := all["anthropic"]; p.Status != found || p.Models != nil {
		t.Errorf("what a server has that stands in for a vendor is not known: %+v", p)
	}
	if p := d.offered(exitOK, "gemini")["gemini"]; len(p.Models) == 0 {
		t.Error("the models of a vendor that is named are told without a key")
	}
	d.must("models")
	contains(t, d.out.String(),
		"missing  gemini      no key: set GOOGLE_API_KEY or GEMINI_API_KEY\n", "ok       openai      key sk-…cdef from OPENAI_API_KEY",
		"\nopenai/gpt-5.2 ", " more: belay models openrouter\n", "\ntasks use work/mine\n", "belay models --check\n")
	d.must("models", "openrouter")
	if strings.Contains(d.out.String(), " more: ") {
		t.Error("of a provider that is named all models are told")
	}
	if code := d.run("models", "opnai"); code != exitUsage || !strings.Contains(d.err.String(), `did you mean "openai"`) {
		t.Errorf("an unknown provider: %d, %s", code, &d.err)
	}
}
