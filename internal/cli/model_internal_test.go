package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/provider/providertest"
)

func TestServersAndKeys(t *testing.T) {
	t.Parallel()
	const key = "sk-ant-0123456789abcdef"
	for _, test := range []struct {
		rule    string
		takes   string // the key that the server takes
		environ []string
		keyFile string
		code    int
	}{
		{"a local server needs no key", "none", nil, "", exitOK},
		{"a key comes from the environment", key, []string{"ANTHROPIC_API_KEY=" + key}, "", exitOK},
		{"a key comes from a file", key, nil, key + "\n", exitOK},
		{"the environment comes before a file", key, []string{"ANTHROPIC_API_KEY=" + key}, "sk-ant-of-another-time", exitOK},
		{"a wrong key is an error that does not quote it", "another", []string{"ANTHROPIC_API_KEY=" + key}, "", exitFailed},
		{"an empty file is an error", key, nil, "\n", exitUsage},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			server := providertest.NewAnthropic(t, &providertest.AnthropicOptions{Key: test.takes})
			server.Script(providertest.Reply{Parts: []providertest.Part{providertest.Text("Good ", "morning!")}})
			d := newDesk(t, nil)
			d.environ = slices.Concat(test.environ, []string{"BELAY_ANTHROPIC_URL=" + server.URL()})
			if test.keyFile != "" {
				path := config.UserPath(filepath.Join(d.dir, "user"))
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				for name, text := range map[string]string{path: "anthropic: {key_file: key}\n", filepath.Join(filepath.Dir(path), "key"): test.keyFile} {
					if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			if code := d.run("run", "--model", "anthropic/claude-sonnet-4-5", "hello"); code != test.code {
				t.Errorf("exit code %d, want %d: %s", code, test.code, &d.err)
			}
			if want := map[bool]string{true: "Good morning!\n"}[test.code == exitOK]; d.out.String() != want {
				t.Errorf("standard output is %q, want %q", d.out.String(), want)
			}
			if strings.Contains(d.err.String(), key) {
				t.Errorf("the key is told: %s", &d.err)
			}
		})
	}
}
