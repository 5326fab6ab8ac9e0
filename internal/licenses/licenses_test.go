package licenses_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/licenses"
)

// Every module of the command has a known licence, and the committed list is the list of today.
//
// SPEC Q-01
func TestOf(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	all, err := licenses.Of(t.Context(), root, "./cmd/belay")
	if err != nil {
		t.Fatal(err)
	}
	byPath := map[string]licenses.Module{}
	for _, m := range all {
		byPath[m.Path] = m
	}
	for path, license := range map[string]string{
		"github.com/spf13/cobra":                 "Apache-2.0",
		"github.com/riverqueue/river":            "MPL-2.0",
		"github.com/inconshreveable/mousetrap":   "Apache-2.0", // only on Windows
		"Go standard library":                    "BSD-3-Clause",
		"htmx.org":                               "0BSD",
		"go.yaml.in/yaml/v3":                     "Apache-2.0 AND MIT", // one file with two licences
		"github.com/modelcontextprotocol/go-sdk": "Apache-2.0 AND MIT",
		"cel.dev/cel-go":                         "Apache-2.0 AND BSD-3-Clause",
		"go.opentelemetry.io/otel":               "Apache-2.0 AND BSD-3-Clause",
		"modernc.org/libc":                       "BSD-3-Clause AND MIT", // of musl, in a file of its own
	} {
		if got := byPath[path].License; got != license {
			t.Errorf("the licence of %s is %q, want %s", path, got, license)
		}
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference", "licenses.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), licenses.Table(all)) {
		t.Error("docs/reference/licenses.md is stale: run make generate")
	}
	texts := licenses.Texts(all)
	for _, m := range all {
		if !strings.Contains(texts, "\n"+strings.TrimSpace(m.Path+" "+m.Version)+" (") {
			t.Errorf("the texts lack %s", m.Path)
		}
	}
}

// A module whose licence is missing or unknown is an error, so that nobody ships it by accident.
func TestOfUnknown(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"": "has no licence file", "All rights are ours.": "is not known"} {
		root := t.TempDir()
		write := func(file, text string) {
			t.Helper()
			file = filepath.Join(root, file)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("go.mod", "module example.com/a\n\ngo 1.26\n\nrequire example.com/b v0.0.0\n\nreplace example.com/b => ./b\n")
		write("a.go", "package a\n\nimport _ \"example.com/b\"\n")
		write("b/go.mod", "module example.com/b\n\ngo 1.26\n")
		write("b/b.go", "package b\n")
		if name != "" {
			write("b/LICENSE", name)
		}
		if _, err := licenses.Of(t.Context(), root, "."); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a module with the licence %q: %v, want %q", name, err, want)
		}
	}
}
