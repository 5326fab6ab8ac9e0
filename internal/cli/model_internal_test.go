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

// aKey is the key that the test servers accept.
const aKey = "sk-of-a-test-0123456789abcdef"

// servers starts a test server, for each kind of provider.
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

// write writes files into the user's settings directory.
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

// A task can use a server of each kind, under any name that the user gives it.
func TestServersAndKeys(t *testing.T) {
	t.Parallel()
	for kind, start := range servers {
		for _, test := range []struct {
			rule    string
			entry   string // more settings of the provider, after its kind and URL
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

// Costs use the price in the settings, and the budget limits them.
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
