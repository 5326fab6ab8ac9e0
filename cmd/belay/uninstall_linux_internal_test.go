//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/filetest"
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
	dir, prefix := project(t, nil), filepath.Join(t.TempDir(), "local")
	program, page := filepath.Join(prefix, "bin", "belay"), filepath.Join(prefix, "share", "man", "man1", "belay.1")
	for _, file := range []string{program, page} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	filetest.WriteProgram(t, program, string(content))
	if err := os.WriteFile(page, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, stderr, code := belay(t, dir, "hook", "install", "--agent", "claude-code", "--yes"); code != 0 {
		t.Fatal(out, stderr)
	}
	locked := filepath.Join(dir, ".claude")
	uninstall := func() (string, int) {
		cmd := command(t, dir, "uninstall", "--yes")
		cmd.Path = program
		return confined(t, cmd)
	}
	if err := os.Chmod(locked, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(locked, 0o700) })
	told, code := uninstall()
	if code != 1 || !strings.Contains(told, "the program stays") || strings.Contains(told, "removed "+filepath.Dir(page)) {
		t.Errorf("it ended with %d:\n%s", code, told)
	}
	if err := os.Chmod(locked, 0o700); err != nil {
		t.Fatal(err)
	}
	if told, code := uninstall(); code != 0 || !strings.Contains(told, "removed "+program) {
		t.Errorf("the second time it ended with %d:\n%s", code, told)
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
