package permit_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/permit"
)

// world is a project with other directories around it.
type world struct {
	project, outside, home, temp string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{filepath.Join(top, "work", "project"), filepath.Join(top, "outside"), filepath.Join(top, "home"), filepath.Join(top, "temp")}
	for _, dir := range []string{w.project, w.outside, w.home, w.temp} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.write(t, "src/a.go", "package a")
	w.write(t, ".git/config", "[core]")
	w.write(t, ".git/hooks/pre-commit", "#!/bin/sh")
	w.write(t, "belay.yaml", "")
	return w
}

func (w *world) write(t testing.TB, name, text string) {
	t.Helper()
	path := filepath.Join(w.project, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w *world) link(t testing.TB, at, to string) {
	t.Helper()
	if err := os.Symlink(to, filepath.Join(w.project, filepath.FromSlash(at))); err != nil {
		t.Fatal(err)
	}
}

// floor returns the floor of the project, with the home and temporary directories of the
// world.
func (w *world) floor(t testing.TB, opts permit.Options) *permit.Floor {
	t.Helper()
	opts.Home, opts.Temp = w.home, w.temp
	f, err := permit.New(w.project, &opts)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func input(t testing.TB, fields map[string]any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func shell(t testing.TB, f *permit.Floor, command string) *permit.Explanation {
	t.Helper()
	return f.Explain(t.Context(), "shell", input(t, map[string]any{"command": command}))
}

func file(t testing.TB, f *permit.Floor, tool, path string) *permit.Explanation {
	t.Helper()
	return f.Explain(t.Context(), tool, input(t, map[string]any{"path": path}))
}

func rules(t testing.TB, lines ...string) []permit.Rule {
	t.Helper()
	var all []permit.Rule
	for _, line := range lines {
		r, err := permit.ParseRule(line)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// expect checks a decision. If by is not empty, it also checks who decided.
func expect(t *testing.T, e *permit.Explanation, want belay.ToolDecision, by string) {
	t.Helper()
	if e.Decision != want || by != "" && !strings.HasPrefix(e.By, by) {
		t.Errorf("got %q by %q, want %q by %q\n%s", e.Decision, e.By, want, by, e)
	}
}
