// Package workers_test tests the workers in this directory.
package workers_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/hooktest"
)

// lines is the maximum number of lines of a complete hook.
const lines = 30

// SPEC C-01, C-08
func TestWorkersDoTheSame(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "no-prod"), "./go")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // what other steps have compiled
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file := filepath.Join(dir, "hooks.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte("  # - id"), []byte("  - id"))
	text = bytes.ReplaceAll(text, []byte("  #   "), []byte("    "))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	declared, err := declare.Load(dir, file)
	if err != nil || len(declared) != 4 {
		t.Fatalf("%d hooks, %v", len(declared), err)
	}
	set, err := declare.New(declared, hook.Origin{Kind: hook.OriginOperator}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	for _, sub := range set.Subscriptions() {
		program := declared[0].Argv[0]
		for _, d := range declared {
			if d.ID == sub.ID() {
				program = d.Argv[0]
			}
		}
		t.Run(sub.ID(), func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(program); err != nil && !strings.HasPrefix(program, ".") {
				t.Fatalf("%v: make test installs it", err)
			}
			for path, want := range map[string]belay.ToolDecision{"/srv/prod/a.txt": belay.ToolDeny, "/srv/prod/../prod/a": belay.ToolDeny, "drafts/a.txt": belay.ToolPass} {
				in := hooktest.Input(t, belay.ToolPre, `{"id": "1", "tool": "write", "input": {"path": "`+path+`"}}`)
				trial := hooktest.Try(t, belay.ToolPre, sub, in, nil)
				if trial.Output.Decision != want || len(trial.Diagnostics) > 0 || want == belay.ToolDeny && trial.Output.Reason != "production is off limits" {
					t.Errorf("%s: %v, want %q", path, trial, want)
				}
			}
			in := hooktest.Input(t, belay.ToolPre, `{"id": "1", "tool": "write", "input": {"path": 7}}`)
			if trial := hooktest.Try(t, belay.ToolPre, sub, in, nil); trial.Output.Decision != belay.ToolDeny {
				t.Errorf("an input that makes no sense: %v, want a denial", trial)
			}
		})
	}
}

func TestWorkersAreShort(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"go/main.go", "no_prod.py", "no_prod.mjs", "no_prod.sh"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte("\n")); n >= lines {
			t.Errorf("%s has %d lines, want fewer than %d", name, n, lines)
		}
	}
}
