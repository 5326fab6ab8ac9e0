package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/provider/providertest"
)

// aKey is what the servers of these tests take.
const aKey = "sk-of-a-test-0123456789abcdef"

// servers start one server for each kind of provider.
var servers = map[string]func(t *testing.T, key string) providertest.Server{
	config.KindAnthropic: func(t *testing.T, key string) providertest.Server {
		t.Helper()
		return providertest.NewAnthropic(t, &providertest.AnthropicOptions{Key: key})
	},
	config.KindOpenAI: func(t *testing.T, key string) providertest.Server {
		t.Helper()
		return providertest.NewResponses(t, &providertest.ResponsesOptions{Key: key})
	},
	config.KindChat: func(t *testing.T, key string) providertest.Server {
		t.Helper()
		return providertest.NewChat(t, &providertest.ChatOptions{Key: key})
	},
	config.KindGemini: func(t *testing.T, key string) providertest.Server {
		t.Helper()
		return providertest.NewGemini(t, &providertest.GeminiOptions{Key: key})
	},
}

// write writes files of the user's directory for settings.
func (d *desk) write(files map[string]string) {
	d.t.Helper()
	dir := filepath.Dir(config.UserPath(filepath.Join(d.dir, "user")))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		d.t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			d.t.Fatal(err)
		}
	}
}

// A task can be given to a server of any kind, by a name of the user's choice.
func TestServersAndKeys(t *testing.T) {
	t.Parallel()
	for kind, start := range servers {
		for _, test := range []struct {
			rule    string
			entry   string // beside kind and address
			environ []string
			keyFile string
			code    int
		}{
			{"a key comes from a variable", "key_env: WORK_LOGIN", []string{"WORK_LOGIN= " + aKey}, "", exitOK},
			{"a key comes from a file", "key_file: key", nil, aKey + "\n", exitOK},
			{"the variable comes before the file", "key_env: WORK_LOGIN, key_file: key", []string{"WORK_LOGIN=" + aKey}, "sk-of-another-time", exitOK},
			{"a wrong key is an error that does not quote it", "key_env: WORK_LOGIN", []string{"WORK_LOGIN=sk-wrong-" + aKey}, "", exitFailed},
			{"a key that is missing is missed", "key_env: WORK_LOGIN", nil, "", exitUsage},
			{"an empty file is an error", "key_file: key", nil, "\n", exitUsage},
			{"a file with more than a key is an error", "key_file: key", nil, "key: " + aKey, exitUsage},
			{"a file that sets a variable is an error", "key_file: key", nil, "WORK_LOGIN=" + aKey, exitUsage},
			{"a vendor's key does not go elsewhere", "", []string{"ANTHROPIC_API_KEY=" + aKey, "OPENAI_API_KEY=" + aKey, "GEMINI_API_KEY=" + aKey, "GOOGLE_API_KEY=" + aKey}, "", exitFailed},
		} {
			t.Run(kind+": "+test.rule, func(t *testing.T) {
				t.Parallel()
				server := start(t, aKey)
				d := newDesk(t, nil)
				d.environ = test.environ
				d.write(map[string]string{
					config.Name: "providers:\n  work: {kind: " + kind + ", url: \"" + server.URL() + "\", " + test.entry + "}\n",
					"key":       test.keyFile,
				})
				if test.code == exitOK {
					server.Script(providertest.Reply{Parts: []providertest.Part{providertest.Text("Good ", "morning!")}})
				}
				if code := d.run("run", "--model", "work/model-of-a-test", "hello"); code != test.code {
					t.Errorf("exit code %d, want %d: %s", code, test.code, &d.err)
				}
				if want := map[bool]string{true: "Good morning!\n"}[test.code == exitOK]; d.out.String() != want {
					t.Errorf("standard output is %q, want %q", d.out.String(), want)
				}
				if strings.Contains(d.err.String(), aKey) {
					t.Errorf("the key is told: %s", &d.err)
				}
			})
		}
	}
}

// Without a name the model is the default of the first provider that has a key.
func TestChosenModel(t *testing.T) {
	t.Parallel()
	every := []string{"OPENROUTER_API_KEY=k", "GEMINI_API_KEY=k", "OPENAI_API_KEY=k", "ANTHROPIC_API_KEY=k"}
	for _, test := range []struct {
		rule, user string
		environ    []string
		want       string
		problem    string
	}{
		{"a name that is set counts", "model: ollama/qwen3\n", every, "ollama/qwen3", ""},
		{"Anthropic comes first", "", every, "anthropic/claude-sonnet-4-5", ""},
		{"then OpenAI", "", every[:3], "openai/gpt-5.2", ""},
		{"then Gemini", "", every[:2], "gemini/gemini-3.6-flash", ""},
		{"by Google's variable too", "", []string{"GOOGLE_API_KEY=k"}, "gemini/gemini-3.6-flash", ""},
		{"then OpenRouter", "", every[:1], "openrouter/anthropic/claude-sonnet-4.5", ""},
		{"then other accounts", "providers: {second: {kind: openai, key_env: SECOND_KEY}}\n", []string{"SECOND_KEY=k"}, "second/gpt-5.2", ""},
		{"one whose address is another has no default", "providers: {anthropic: {url: \"http://127.0.0.1:1\", key_env: ANTHROPIC_API_KEY}}\n", every, "openai/gpt-5.2", ""},
		{"a key of white space is none", "", []string{"ANTHROPIC_API_KEY= "}, "", "there is no model to ask: set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or OPENROUTER_API_KEY"},
		{"a server alone does not say which model", "providers: {ollama: {window: 8192}}\n", nil, "", "set BELAY_MODEL=ollama/NAME"},
		{"a key file that cannot be read is an error", "providers: {openai: {key_file: nowhere}}\n", nil, "", "belay.yaml:1: open "},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			got, err := chosenModel(load(t, test.user, test.environ...))
			if got != test.want || (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
				t.Errorf("got %q, %v, want %q, %q", got, err, test.want, test.problem)
			}
		})
	}
}

// The defaults are in the built-in table: their windows and prices are known.
func TestDefaultModelsAreKnown(t *testing.T) {
	t.Parallel()
	settings := load(t, "", "ANTHROPIC_API_KEY=k", "OPENAI_API_KEY=k", "GEMINI_API_KEY=k", "OPENROUTER_API_KEY=k")
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	defaults := 0
	for _, name := range settings.ProviderNames() {
		p, err := settings.Provider(name)
		if err != nil {
			t.Fatal(err)
		}
		if p.Default == "" {
			continue
		}
		defaults++
		contains(t, string(page), "| `"+name+"` | `"+strings.Join(p.KeyEnv, "`, else `")+"` | `"+p.Default+"` |\n")
		model, err := findModel(settings, name+"/"+p.Default)
		if err != nil {
			t.Fatal(err)
		}
		if info := model.(belay.InfoModel).Info(); info.Name != name+"/"+p.Default || info.Window == 0 || info.Price.In == 0 || info.Price.Out == 0 { //nolint:forcetypeassert // all of them tell
			t.Errorf("little is known of %s: %+v", p.Default, info)
		}
	}
	if defaults != 4 {
		t.Errorf("there are %d defaults, want those of four vendors", defaults)
	}
}

// What a price of the settings makes of tokens is counted, and bounded.
//
// SPEC L-07
func TestPricesOfTheSettingsCount(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, price string
		code        int
	}{
		{"a budget in dollars ends a turn", "{in: 1000, out: 1000}", exitLimit},
		{"one that is not reached does not", "{in: 0.001, out: 0.001}", exitOK},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			server := providertest.NewChat(t, &providertest.ChatOptions{Key: aKey})
			server.Script(
				providertest.Reply{Parts: []providertest.Part{providertest.Call("1", "list", `{}`)}, Usage: belay.Usage{In: 1000, Out: 1000}},
				providertest.Reply{Parts: []providertest.Part{providertest.Text("Done.")}, Usage: belay.Usage{In: 1000, Out: 1000}},
			)
			d := newDesk(t, nil)
			d.environ = []string{"WORK_LOGIN=" + aKey}
			d.write(map[string]string{config.Name: "providers:\n  work: {url: \"" + server.URL() + "\", key_env: WORK_LOGIN, models: {m: {price: " + test.price + "}}}\n"})
			if code := d.run("run", "--model", "work/m", "--budget", "1", "hello"); code != test.code {
				t.Errorf("exit code %d, want %d: %s", code, test.code, &d.err)
			}
		})
	}
}

// A name makes a model of its provider, with what the settings say about it.
func TestFindModel(t *testing.T) {
	t.Parallel()
	settings := load(t, `
providers:
  groq: {url: "https://api.groq.com/openai/v1"}
  claude: {kind: anthropic, url: "http://127.0.0.1:1", window: 5}
  google: {kind: gemini, url: "http://127.0.0.1:1", models: {m: {price: {in: 1, out: 2}}}}
`)
	for name, want := range map[string]belay.ModelInfo{
		"ollama/qwen3":     {Name: "ollama/qwen3"},
		"vllm/Qwen/Qwen3":  {Name: "vllm/Qwen/Qwen3"},
		"claude/of-a-test": {Name: "claude/of-a-test", Window: 5},
		"google/m":         {Name: "google/m", Price: belay.Price{In: 1, Out: 2, CacheRead: 1, CacheWrite: 1}},
	} {
		model, err := findModel(settings, name)
		if err != nil {
			t.Fatal(err)
		}
		if got := model.(belay.InfoModel).Info(); got != want { //nolint:forcetypeassert // all of them tell
			t.Errorf("%s is %+v, want %+v", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"openai/gpt-5.2":     "there is no key for openai: set OPENAI_API_KEY, or say in the user's /",
		"gemini/m":           "set GOOGLE_API_KEY or GEMINI_API_KEY",
		"opnai/gpt-5.2":      `unknown provider "opnai" (did you mean "openai"?)`,
		"claude-sonnet-4-5":  `did you mean "anthropic/claude-sonnet-4-5"`,
		"":                   "write PROVIDER/NAME",
		"ollama/":            "write PROVIDER/NAME",
		"scripted/none.yaml": "none.yaml",
	} {
		if _, err := findModel(settings, name); err == nil || !strings.Contains(err.Error(), want) || exitCode(err) != exitUsage {
			t.Errorf("%q: the error is %v, want %q in it", name, err, want)
		}
	}
}
