package permit_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/belay-run/belay/permit"
)

// The sandbox must protect the same files as the floor: those that other programs run
// automatically.
//
// SPEC P-16
func TestASandboxIsToldWhatRunsLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, ".git/config", "[core]\n\thooksPath = .husky/_\n")
	w.write(t, ".husky/_/pre-commit", "x")
	w.write(t, ".husky/pre-commit", "sh scripts/check.sh\n")
	w.write(t, "scripts/check.sh", "x")
	w.write(t, ".vscode/settings.json", "{}")
	w.write(t, ".zed/tasks.json", "{}")
	w.write(t, ".git/rebase-merge/git-rebase-todo", "pick abc")
	floor := w.floor(t, permit.Options{Sandboxed: true})
	got := append(floor.RunsLater(), floor.RebasePlans()...)
	for _, name := range []string{".envrc", ".mcp.json", ".vscode/tasks.json", ".vscode/settings.json", ".zed/tasks.json", ".vimrc", ".nvim.lua", ".devcontainer.json", ".husky", "scripts/check.sh", ".git/rebase-merge"} {
		if !slices.Contains(got, filepath.Join(w.project, filepath.FromSlash(name))) {
			t.Errorf("%s is not among what runs later: %q", name, got)
		}
	}
	for _, name := range []string{".cursor/mcp.json", ".gdbinit", ".zed/settings.json", "scripts"} {
		if slices.Contains(got, filepath.Join(w.project, filepath.FromSlash(name))) {
			t.Errorf("%s is not there, or runs nothing, and is among what runs later: %q", name, got)
		}
	}
}
