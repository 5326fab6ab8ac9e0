package config_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
)

// A provider has the built-in settings, changed by the user's.
func TestProvider(t *testing.T) {
	t.Parallel()
	const user = `
providers:
  openai: {key_file: /key}
  anthropic: {url: "http://127.0.0.1:1"}
  gemini: {url: "https://generativelanguage.googleapis.com/", window: 9}
  ollama:
  vllm: {kind: openai, url: "http://10.0.0.1:8000/v1", key_env: VLLM_KEY}
  second: {kind: anthropic, key_env: SECOND_KEY}
  third: {kind: openai-chat}
  groq: {url: "https://api.groq.com/openai/v1", key_env: GROQ_API_KEY}
  plain: {url: "http://127.0.0.1:2"}
  claude: {kind: anthropic, url: "http://127.0.0.1:3"}
`
	l := load(t, files(t, user, ""))
	for _, test := range []struct {
		rule string
		want config.Provider
	}{
		{"a built-in one needs no settings", config.Provider{Name: "openrouter", Kind: "openai-chat", URL: "https://openrouter.ai/api/v1", KeyEnv: []string{"OPENROUTER_API_KEY"}, Table: "openrouter", Default: "anthropic/claude-sonnet-4.5"}},
		{"a file for the key leaves the variable before it", config.Provider{Name: "openai", Kind: "openai", URL: "https://api.openai.com/v1", KeyEnv: []string{"OPENAI_API_KEY"}, KeyFile: "/key", Table: "openai", Default: "gpt-5.2", Said: true}},
		{"the key of the environment does not go to another address", config.Provider{Name: "anthropic", Kind: "anthropic", URL: "http://127.0.0.1:1", Table: "anthropic", Said: true, Moved: true}},
		{"Google's variable comes before Gemini's, and a path is no other address", config.Provider{Name: "gemini", Kind: "gemini", URL: "https://generativelanguage.googleapis.com/", KeyEnv: []string{"GOOGLE_API_KEY", "GEMINI_API_KEY"}, Table: "gemini", Default: "gemini-3.6-flash", Said: true, Tuning: config.Tuning{Window: 9}}},
		{"an entry may say nothing", config.Provider{Name: "ollama", Kind: "openai-chat", URL: "http://localhost:11434/v1", Table: "ollama", Said: true}},
		{"settings come before what is built in", config.Provider{Name: "vllm", Kind: "openai", URL: "http://10.0.0.1:8000/v1", KeyEnv: []string{"VLLM_KEY"}, Table: "vllm", Said: true, Moved: true}},
		{"a kind alone is another account with a vendor", config.Provider{Name: "second", Kind: "anthropic", URL: "https://api.anthropic.com", KeyEnv: []string{"SECOND_KEY"}, Table: "anthropic", Default: "claude-sonnet-4-5", Said: true}},
		{"the vendor of both protocols is OpenAI, and its variable is read for it", config.Provider{Name: "third", Kind: "openai-chat", URL: "https://api.openai.com/v1", KeyEnv: []string{"OPENAI_API_KEY"}, Table: "openai", Default: "gpt-5.2", Said: true}},
		{"the built-in table may know others by name", config.Provider{Name: "groq", Kind: "openai-chat", URL: "https://api.groq.com/openai/v1", KeyEnv: []string{"GROQ_API_KEY"}, Table: "groq", Said: true}},
		{"an address alone is a server that speaks Chat Completions and gets no key", config.Provider{Name: "plain", Kind: "openai-chat", URL: "http://127.0.0.1:2", Table: "plain", Said: true}},
		{"a kind with an address gets no key of the vendor", config.Provider{Name: "claude", Kind: "anthropic", URL: "http://127.0.0.1:3", Table: "claude", Said: true}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			got, err := l.Provider(test.want.Name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&test.want, got); diff != "" {
				t.Error(diff)
			}
			if got.NeedsKey() != (len(test.want.KeyEnv) > 0 || test.want.KeyFile != "") {
				t.Errorf("it needs a key: %v", got.NeedsKey())
			}
		})
	}
	want := []string{"anthropic", "openai", "gemini", "openrouter", "ollama", "llama.cpp", "vllm", "lmstudio", "claude", "groq", "plain", "second", "third"}
	if diff := cmp.Diff(want, l.ProviderNames()); diff != "" {
		t.Errorf("the order in which keys are looked for (-want +got):\n%s", diff)
	}
	for _, variable := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY", "VLLM_KEY", "SECOND_KEY", "GROQ_API_KEY"} {
		if !slices.Contains(l.KeyVariables(), variable) {
			t.Errorf("%s may hold a key, and is not among %q", variable, l.KeyVariables())
		}
	}
}

// Settings of a model override those of its provider.
func TestTuning(t *testing.T) {
	t.Parallel()
	l := load(t, files(t, `
providers:
  ollama:
    window: 32768
    max_tokens: 100
    effort: low
    extra: {a: 1}
    models:
      qwen3: {window: 8192, effort: high, extra: {b: 2}, price: {in: 1}}
`, ""))
	p, err := l.Provider("ollama")
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]config.Tuning{
		"qwen3":    {Window: 8192, MaxTokens: 100, Effort: "high", Extra: []byte(`{"b":2}`), Price: belay.Price{In: 1, CacheRead: 1, CacheWrite: 1}},
		"llama3.2": {Window: 32_768, MaxTokens: 100, Effort: "low", Extra: []byte(`{"a":1}`)},
	} {
		if diff := cmp.Diff(want, p.Of(model)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", model, diff)
		}
	}
}

func TestProviderMistakes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, user string
		want       []string // parts of the error; nil means no error
	}{
		{"nothing is said", "providers:\n", nil},
		{"providers are named", "providers: [ollama]\n", []string{"belay.yaml:1: providers: expected names with settings"}},
		{"a provider has keys", "providers:\n  openai: sk-0123\n", []string{"belay.yaml:2: providers.openai: expected keys with values"}},
		{"an unknown key is near one", "providers:\n  ollama:\n    ulr: x\n", []string{`belay.yaml:3: providers.ollama: unknown key "ulr" (did you mean "url"?)`}},
		{"a key is not written into settings", "providers:\n  openai:\n    api_key: sk-hunter2\n", []string{`belay.yaml:3: providers.openai: api_key: an API key must not be in settings`, "write key_env: VARIABLE", "write key_file: FILE"}},
		{"nor by another name", "providers:\n  openai: {url: 'https://host/v1', apiKey: sk-hunter2}\n", []string{`belay.yaml:2: providers.openai: apiKey: an API key must not be in settings`}},
		{"nor beside the providers", "api-key: sk-hunter2\n", []string{`belay.yaml:1: api-key: an API key must not be in settings`, "under providers.NAME"}},
		{"an unknown key of a model", "providers:\n  ollama:\n    models:\n      qwen3: {windw: 1}\n", []string{`belay.yaml:4: providers.ollama.models.qwen3: unknown key "windw" (did you mean "window"?)`}},
		{"an unknown kind is near one", "providers: {work: {kind: open-ai, url: \"http://x\"}}\n", []string{`providers.work: kind: "open-ai" is not one of anthropic, openai, openai-chat, gemini (did you mean "openai"?)`}},
		{"a server is somewhere", "providers:\n  work: {key_env: WORK_KEY}\n", []string{"belay.yaml:2: providers.work: url is missing"}},
		{"a built-in one may have been meant", "providers:\n  olama: {window: 5}\n", []string{`providers.olama: url is missing (did you mean "ollama"?)`}},
		{"a built-in one stays of its kind", "providers:\n  anthropic: {kind: gemini}\n", []string{"belay.yaml:2: providers.anthropic: kind: this built-in provider is of kind anthropic: use another provider name for kind gemini"}},
		{"but for the two that OpenAI has", "providers: {openai: {kind: openai-chat}, vllm: {kind: openai}}\n", nil},
		{"an address is one of a web server", "providers: {work: {url: \"localhost:8080\"}}\n", []string{"providers.work: url: the value is not a URL"}},
		{"an address holds no password", "providers: {work: {url: \"https://me:hunter2@host\"}}\n", []string{"providers.work: url: the URL contains a user name or a password"}},
		{"an address ends with its path", "providers: {work: {url: \"https://host/v1?key=hunter2\"}}\n", []string{"providers.work: url: the URL has a query or a fragment"}},
		{"an address is not that of a request", "providers: {work: {url: \"https://host/v1/chat/completions\"}}\n", []string{"providers.work: url: https://host/v1/chat/completions ends in a request path, which Belay adds: write https://host/v1"}},
		{"nor of any other", "providers:\n  a: {kind: openai, url: \"https://host/v1/responses/\"}\n  b: {kind: anthropic, url: \"https://host/v1/messages\"}\n  c: {url: \"https://host/v1/models\"}\n", []string{"belay.yaml:2: providers.a: url: https://host/v1/responses/ ends", "write https://host/v1\n", "belay.yaml:3: providers.b: url: https://host/v1/messages ends", "write https://host\n", "belay.yaml:4: providers.c: url: "}},
		{"a version is not told to those who add it", "providers:\n  anthropic: {url: \"https://host/claude/v1\"}\n  google: {kind: gemini, url: \"https://host/v1beta\"}\n", []string{"belay.yaml:2: providers.anthropic: url: with kind anthropic Belay adds the version: write https://host/claude\n", "belay.yaml:3: providers.google: url: with kind gemini Belay adds the version: write https://host"}},
		{"it is to others", "providers: {work: {url: \"https://host/v1\"}, vllm: {kind: openai, url: \"https://host/v1/\"}}\n", nil},
		{"a key in place of a variable", "providers: {openai: {key_env: sk-hunter2}}\n", []string{"providers.openai: key_env: the value is not the name of a variable"}},
		{"a window is a number", "providers: {ollama: {window: big}}\n", []string{`providers.ollama: window: "big" is not a number`}},
		{"a price has parts", "providers: {ollama: {price: 3}}\n", []string{"providers.ollama.price: expected keys with values"}},
		{"a price of nothing says nothing", "providers: {openai: {models: {gpt-5: {price: {in: 0, out: 0}}}}}\n", []string{"providers.openai.models.gpt-5: price: all prices are zero"}},
		{"effort is OpenAI's", "providers:\n  gemini:\n    effort: low\n", []string{"belay.yaml:3: providers.gemini: effort: not supported by kind gemini, only by openai"}},
		{"thinking is not", "providers:\n  ollama:\n    models:\n      qwen3:\n        thinking: 1000\n", []string{"belay.yaml:5: providers.ollama.models.qwen3: thinking: not supported by kind openai-chat, only by anthropic and gemini"}},
		{"thinking is a number or a word", "providers: {gemini: {thinking: much}}\n", []string{"providers.gemini: thinking: expected a number of tokens, or adaptive"}},
		{"extra has keys", "providers: {ollama: {extra: 3}}\n", []string{"providers.ollama: extra: expected keys with values"}},
		{"a slash ends the name of a provider", "providers: {a/b: {url: \"http://x\"}}\n", []string{`providers: "a/b" is not a valid name`}},
		{"scripts have nothing to set", "providers: {scripted: {url: \"http://x\"}}\n", []string{`"scripted" plays scripts and has no settings`}},
		{"a model may stand before its provider", "model: work/m\nproviders: {work: {url: \"http://x\"}}\n", nil},
		{"a model of nobody", "mode: strict\nmodel: werk/m\nproviders: {work: {url: \"http://x\"}}\n", []string{`belay.yaml:2: model: unknown provider "werk" (did you mean "work"?): available are anthropic, openai,`}},
		{"a model of a vendor without the vendor's name", "model: gpt-5.2\n", []string{`"gpt-5.2" is not a model (did you mean "openai/gpt-5.2"?): write PROVIDER/NAME`}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			_, err := config.Load(files(t, test.user, ""))
			if len(test.want) == 0 && err != nil {
				t.Errorf("it is refused: %v", err)
			}
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %v, want %q in it", err, want)
				}
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("what may be a secret is told: %v", err)
			}
		})
	}
}

// Variables can set the servers and keys, because they differ between machines.
func TestProviderVariables(t *testing.T) {
	t.Parallel()
	o := files(t, "providers:\n  my-own: {url: \"http://127.0.0.1:1\", window: 7}\n", "")
	o.Environ = []string{"BELAY_PROVIDERS_LLAMA_CPP_URL=http://127.0.0.1:2", "BELAY_PROVIDERS_MY_OWN_KEY_ENV=MY_KEY", "BELAY_PROVIDERS_OPENAI_KEY_FILE=/key", "BELAY_PROVIDERS_MY_OWN_URL="}
	l := load(t, o)
	for name, want := range map[string]config.Provider{
		"llama.cpp": {Name: "llama.cpp", Kind: "openai-chat", URL: "http://127.0.0.1:2", Table: "llama.cpp", Said: true, Moved: true},
		"my-own":    {Name: "my-own", Kind: "openai-chat", URL: "http://127.0.0.1:1", KeyEnv: []string{"MY_KEY"}, Table: "my-own", Said: true, Tuning: config.Tuning{Window: 7}},
	} {
		got, err := l.Provider(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for path, want := range map[string]string{
		"providers.llama.cpp.url": "BELAY_PROVIDERS_LLAMA_CPP_URL", "providers.my-own.url": l.UserFile + ":2", "providers.my-own.key_env": "BELAY_PROVIDERS_MY_OWN_KEY_ENV",
		"providers.openai.key_file": "BELAY_PROVIDERS_OPENAI_KEY_FILE", "providers.openai.url": "default",
	} {
		if got := l.From(path).String(); got != want {
			t.Errorf("%s is from %s, want %s", path, got, want)
		}
	}
	for variable, want := range map[string]string{
		"BELAY_PROVIDERS_OLAMA_URL=http://x":                         `there is no such setting (did you mean "BELAY_PROVIDERS_OLLAMA_URL"?)`,
		"BELAY_PROVIDERS_OLLAMA_URL=localhost":                       "BELAY_PROVIDERS_OLLAMA_URL: the value is not a URL",
		"BELAY_PROVIDERS_OLLAMA_URL=http://host/v1/chat/completions": "write http://host/v1",
		"BELAY_PROVIDERS_ANTHROPIC_URL=https://host/v1":              "BELAY_PROVIDERS_ANTHROPIC_URL: with kind anthropic Belay adds the version: write https://host",
		"BELAY_PROVIDERS_OPENAI_KEY_ENV=sk-abcd":                     "BELAY_PROVIDERS_OPENAI_KEY_ENV: the value is not the name of a variable",
		"BELAY_PROVIDERS=x":                                          "set it in a belay.yaml, not by a variable",
		"BELAY_MODEL=nobody/m":                                       `BELAY_MODEL: model: unknown provider "nobody"`,
	} {
		o := files(t, "", "")
		o.Environ = []string{variable}
		if _, err := config.Load(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q in it", variable, err, want)
		}
	}
}

// The examples in the docs are valid.
func TestDocumentedProviders(t *testing.T) {
	t.Parallel()
	for page, want := range map[string][]string{"cli.md": {"anthropic", "ollama", "work"}, "providers.md": {"groq", "ollama", "openai", "second"}} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		_, block, _ := strings.Cut(string(text), "```yaml\nproviders:\n")
		block, _, _ = strings.Cut(block, "```")
		l := load(t, files(t, "providers:\n"+block, ""))
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(l.Providers))); diff != "" {
			t.Errorf("providers of %s (-want +got):\n%s", page, diff)
		}
		if page == "providers.md" && l.Providers["ollama"].Models["gpt-oss:120b"].Window != 131_072 {
			t.Errorf("the models of ollama are %v", l.Providers["ollama"].Models)
		}
	}
}
