package assembly

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// testKey is the key that these tests use.
const testKey = "sk-of-a-test-0123456789abcdef"

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
		{"a key of white space is none", "", []string{"ANTHROPIC_API_KEY= "}, "", "there is no model: set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or OPENROUTER_API_KEY"},
		{"a server alone does not say which model", "providers: {ollama: {window: 8192}}\n", nil, "", "set BELAY_MODEL=ollama/NAME"},
		{"a key file that cannot be read is an error", "providers: {openai: {key_file: nowhere}}\n", nil, "", "belay.yaml:1: open "},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			got, err := ChooseModel(load(t, test.user, test.environ...))
			if got != test.want || (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
				t.Errorf("got %q, %v, want %q, %q", got, err, test.want, test.problem)
			}
		})
	}
}

// FindModel makes a model of the right provider, with the settings for that model.
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
		model, err := FindModel(settings, name)
		if err != nil {
			t.Fatal(err)
		}
		if got := model.(belay.InfoModel).Info(); got != want { //nolint:forcetypeassert // all of them tell
			t.Errorf("%s is %+v, want %+v", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"openai/gpt-5.2":     "there is no key for openai: set OPENAI_API_KEY; or put the key into a file, and name this file in the user's /",
		"gemini/m":           "set GOOGLE_API_KEY or GEMINI_API_KEY",
		"opnai/gpt-5.2":      `unknown provider "opnai" (did you mean "openai"?)`,
		"claude-sonnet-4-5":  `did you mean "anthropic/claude-sonnet-4-5"`,
		"":                   "write PROVIDER/NAME",
		"ollama/":            "write PROVIDER/NAME",
		"scripted/none.yaml": "none.yaml",
	} {
		if _, err := FindModel(settings, name); err == nil || !strings.Contains(err.Error(), want) || !IsMistake(err) {
			t.Errorf("%q: the error is %v, want %q in it", name, err, want)
		}
	}
}

// Two accounts of one vendor are two models, although the vendor uses one name for both.
func TestAccountsAreToldApart(t *testing.T) {
	t.Parallel()
	settings := load(t, "providers: {second: {kind: anthropic, key_env: SECOND_KEY}}\n", "SECOND_KEY=k", "ANTHROPIC_API_KEY=k")
	for _, name := range []string{"anthropic/claude-sonnet-4-5", "second/claude-sonnet-4-5"} {
		model, err := FindModel(settings, name)
		if err != nil {
			t.Fatal(err)
		}
		if got := model.(belay.InfoModel).Info(); got.Name != name || got.Window == 0 { //nolint:forcetypeassert // all of them tell
			t.Errorf("%s is %+v", name, got)
		}
	}
}

func TestIsHere(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"http://localhost:11434/v1": true, "http://LOCALHOST./v1": true, "http://127.0.0.2:1": true, "http://[::1]:8080/v1": true, "http://a.localhost": true, "http://0.0.0.0:1": true,
		"http://10.0.0.7:11434/v1": false, "https://api.openai.com/v1": false, "http://localhost.example.com": false, ":": false,
	} {
		if got := IsHere(address); got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
}

// The error about an invalid key file names the file and does not show the key.
func TestKeyFilesHoldKeys(t *testing.T) {
	t.Parallel()
	const assigned = "key sets a variable, OPENAI_API_KEY=…, but a key file must contain only the key"
	for _, test := range []struct{ rule, text, problem string }{
		{"a key", testKey, ""},
		{"a key in base64", "QUJDREVGR0hJSktMTU5PUA==", ""},
		{"a variable", "OPENAI_API_KEY=" + testKey, assigned},
		{"a variable with white space", "OPENAI_API_KEY = " + testKey, assigned},
		{"a variable for a shell", "export OPENAI_API_KEY=\"" + testKey + "\"", assigned},
		{"a file of variables", "OPENAI_API_KEY=" + testKey + "\nOTHER=" + testKey, assigned},
		{"a key between quotation marks", `"` + testKey + `"`, "key has quotation marks around the key"},
		{"more than a key", testKey + " " + testKey, "it contains white space"},
		{"nothing", "\n", "key is empty"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			s := load(t, "providers: {work: {url: 'http://127.0.0.1:1/v1', key_file: key}}\n")
			p, err := s.Provider("work")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p.KeyFile, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, where, err := KeyOf(s, p)
			switch {
			case test.problem == "" && (err != nil || where != p.KeyFile):
				t.Errorf("from %q: %v", where, err)
			case test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem) || !strings.Contains(err.Error(), p.KeyFile)):
				t.Errorf("got %v, want one that names the file and says %q", err, test.problem)
			case err != nil && strings.Contains(err.Error(), testKey):
				t.Errorf("the key is told: %v", err)
			}
		})
	}
}

// The built-in table has the default models, so their context windows and prices are known.
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
		if row := "| `" + name + "` | `" + strings.Join(p.KeyEnv, "`, else `") + "` | `" + p.Default + "` |\n"; !strings.Contains(string(page), row) {
			t.Errorf("the page has no row %q", row)
		}
		model, err := FindModel(settings, name+"/"+p.Default)
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
