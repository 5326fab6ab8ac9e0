package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay/internal/config"
)

// A setting with an old name still has its effect. A warning names its file and line, and what to write instead. A mistake below
// it is an error as everywhere, and both names in one file are one.
func TestDeprecatedSettings(t *testing.T) {
	t.Parallel()
	for rule, test := range map[string]struct{ text, url, warning, mistake string }{
		"the old name works":            {text: "mode: strict\nanthropic:\n  url: https://proxy.example\n", url: "https://proxy.example", warning: `belay.yaml:2: "anthropic" is deprecated: write "providers.anthropic"`},
		"the new name needs no warning": {text: "providers:\n  anthropic:\n    url: https://proxy.example\n", url: "https://proxy.example"},
		"a mistake below the old name":  {text: "anthropic:\n  ulr: https://proxy.example\n", mistake: `belay.yaml:2: providers.anthropic: unknown key "ulr"`},
		"both names":                    {text: "anthropic:\n  url: https://a.example\nproviders:\n  work: {url: https://b.example}\n", mistake: `belay.yaml:1: "anthropic" is now "providers.anthropic": move it there, because line 3 has "providers" already`},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			user, dir := t.TempDir(), t.TempDir()
			path := config.UserPath(user)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			loaded, err := config.Load(&config.Options{Dir: dir, UserDir: user, SystemDir: t.TempDir(), Environ: []string{}})
			if test.mistake != "" {
				if err == nil || !strings.Contains(err.Error(), test.mistake) {
					t.Errorf("the error is %v, want %s", err, test.mistake)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if url := loaded.Providers["anthropic"].URL; url != test.url {
				t.Errorf("the URL is %q, want %q", url, test.url)
			}
			var want []string
			if test.warning != "" {
				want = []string{filepath.Dir(path) + "/" + test.warning}
			}
			if diff := cmp.Diff(want, loaded.Deprecated); diff != "" {
				t.Errorf("the warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// The old name gives a project no right that the new one does not give: a project names no server that gets a key.
func TestDeprecatedSettingsOfAProject(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "belay.yaml"), []byte("anthropic: {url: https://proxy.example}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := config.Load(&config.Options{Dir: dir, UserDir: t.TempDir(), SystemDir: t.TempDir(), Environ: []string{}})
	if err == nil || !strings.Contains(err.Error(), "belay.yaml:1: providers: ") {
		t.Errorf("the error is %v", err)
	}
}
