//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/store/sqlite"
)

// Go makes the directories of packages read-only. The cache with them is removed all the same.
//
// SPEC Q-03
func TestUninstallRemovesPackages(t *testing.T) {
	t.Parallel()
	dir, temp := project(t, nil), t.TempDir()
	cache := filepath.Join(temp, filepath.Base(assembly.CacheDir(dir)))
	pkg := filepath.Join(cache, "go-mod", "example.com", "pkg@v1.0.0")
	if err := os.MkdirAll(pkg, 0o700); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(t.TempDir(), "mine")
	if err := os.Mkdir(mine, 0o500); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(mine, filepath.Join(pkg, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(pkg, "pkg.go"), []byte("package pkg\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	for _, locked := range []string{pkg, filepath.Dir(pkg)} {
		if err := os.Chmod(locked, 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(locked, 0o700) })
	}
	cmd := command(t, dir, "uninstall", "--yes")
	cmd.Env = append(cmd.Env, "TMPDIR="+temp)
	if told, code := confined(t, cmd); code != 0 || !strings.Contains(told, "removed "+cache) {
		t.Errorf("it ended with %d:\n%s", code, told)
	}
	if _, err := os.Lstat(cache); !os.IsNotExist(err) {
		t.Errorf("the cache is still there: %v", err)
	}
	if info, err := os.Stat(mine); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("what a link leads to is %v, %v", info.Mode(), err)
	}
}

// If something cannot be removed, the program stays: the configuration of an agent may still run it, and that agent would block
// every call.
//
// SPEC Q-03
func TestUninstallKeepsTheProgram(t *testing.T) {
	t.Parallel()
	chmod := func(mode os.FileMode) func(t *testing.T, file string) {
		return func(t *testing.T, file string) {
			t.Helper()
			if err := os.Chmod(filepath.Dir(file), mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	replace := func(before, after string) func(t *testing.T, file string) {
		return func(t *testing.T, file string) {
			t.Helper()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), before, after)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		rule          string
		spoil, repair func(t *testing.T, file string)
	}{
		{"a file that cannot be changed", chmod(0o500), chmod(0o700)},
		{"a file that cannot be read", chmod(0), chmod(0o700)},
		{"a file with a comment", replace("{\n", "{ // mine\n"), replace("{ // mine\n", "{\n")},
		{"entries for another agent", replace("claude-code", "codex"), replace("codex", "claude-code")},
		{"one entry for another agent", replace("claude-code || exit 2", "codex || exit 2"), replace("codex", "claude-code")},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			dir, prefix := project(t, nil), filepath.Join(t.TempDir(), "local")
			program, page := filepath.Join(prefix, "bin", "belay"), filepath.Join(prefix, "share", "man", "man1", "belay.1")
			for _, file := range []string{program, page} {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			copyProgram(t, program)
			if err := os.WriteFile(page, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if out, stderr, code := belay(t, dir, "hook", "install", "--agent", "claude-code", "--yes"); code != 0 {
				t.Fatal(out, stderr)
			}
			file := filepath.Join(dir, ".claude", "settings.json")
			t.Cleanup(func() { _ = os.Chmod(filepath.Dir(file), 0o700) })
			uninstall := func() (string, int) {
				cmd := command(t, dir, "uninstall", "--yes")
				cmd.Path = program
				return confined(t, cmd)
			}
			test.spoil(t, file)
			told, code := uninstall()
			if code != 1 || !strings.Contains(told, "the program stays") || !strings.Contains(told, ".claude") || strings.Contains(told, "removed "+filepath.Dir(page)) {
				t.Errorf("it ended with %d:\n%s", code, told)
			}
			if !strings.Contains(told, "--below DIR") {
				t.Errorf("it says nothing of other projects:\n%s", told)
			}
			test.repair(t, file)
			if told, code := uninstall(); code != 0 || !strings.Contains(told, "removed "+program) {
				t.Errorf("the second time it ended with %d:\n%s", code, told)
			}
			if _, err := os.Lstat(file); !os.IsNotExist(err) {
				t.Errorf("the agent still runs Belay: %v", err)
			}
		})
	}
}

// While a program has the store open, nothing is removed, and its process is named. A worker of "belay hook" is ended.
//
// SPEC Q-03
func TestUninstallWhileTheStoreIsOpen(t *testing.T) {
	t.Parallel()
	w := newWarm(t)
	w.ask()
	w.until("a worker listens", func() bool { return len(w.sockets()) == 1 })
	file := filepath.Join(w.dir, ".belay", "belay.db")
	store, err := sqlite.Open(t.Context(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	uninstall := func() (string, int) {
		cmd := command(t, w.dir, "uninstall", "--yes")
		hook, _ := w.command()
		cmd.Env = hook.Env
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	told, code := uninstall()
	if code != 1 || !strings.Contains(told, "nothing is removed: "+file) || !strings.Contains(told, fmt.Sprintf("process %d on ", os.Getpid())) {
		t.Errorf("it ended with %d:\n%s", code, told)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	w.ask()
	w.until("a worker listens again", func() bool { return len(w.sockets()) == 1 })
	w.ask()
	if told, code := uninstall(); code != 0 || !strings.Contains(told, "removed "+file) {
		t.Errorf("with a worker it ended with %d:\n%s", code, told)
	}
	if users, err := sqlite.Users(file); err != nil || len(users) > 0 {
		t.Errorf("the store is open in %q, %v", users, err)
	}
}

// A configuration of another agent that cannot be read hides nothing else: it is listed, or it is none.
//
// SPEC Q-03
func TestUninstallPassesTheUnreadable(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"s.yaml": "steps: [{text: Done.}]\n", ".gemini": "a file"})
	if _, stderr, code := belay(t, dir, "run", "--model", "scripted/s.yaml", "a task"); code != 0 {
		t.Fatal(stderr)
	}
	locked := filepath.Join(dir, ".cursor")
	if err := os.Mkdir(locked, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(locked, 0o700) })
	told, code := confinedBelay(t, dir, "uninstall", "--dry-run")
	if code != 0 || !strings.Contains(told, filepath.Join(dir, ".belay", "belay.db")) {
		t.Errorf("it ended with %d:\n%s", code, told)
	}
	for _, want := range []string{filepath.Join(locked, "hooks.json"), "Belay cannot read this (permission denied)"} {
		if !strings.Contains(told, want) {
			t.Errorf("it does not list %q:\n%s", want, told)
		}
	}
	if strings.Contains(told, ".gemini") {
		t.Errorf("it lists what is no configuration:\n%s", told)
	}
	if told, code := confinedBelay(t, dir, "uninstall", "--yes"); code != 0 {
		t.Errorf("it ended with %d:\n%s", code, told)
	}
	if _, err := os.Lstat(filepath.Join(dir, ".belay", "belay.db")); !os.IsNotExist(err) {
		t.Errorf("the store is still there: %v", err)
	}
}
