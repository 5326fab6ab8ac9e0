//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// confinedBelay runs belay as a user other than root, because file permissions do not limit
// root.
func confinedBelay(t *testing.T, dir string, args ...string) (string, int) {
	t.Helper()
	return confined(t, command(t, dir, args...))
}

// confined runs a command as confinedBelay does.
func confined(t *testing.T, cmd *exec.Cmd) (string, int) {
	t.Helper()
	if os.Geteuid() == 0 {
		setpriv, err := exec.LookPath("setpriv")
		if err != nil {
			t.Skipf("NOT COVERED: root may write anywhere, and there is no setpriv: %v", err)
		}
		cmd.Args = append([]string{"setpriv", "--bounding-set=-dac_override,-dac_read_search", cmd.Path}, cmd.Args[1:]...)
		cmd.Path = setpriv
	}
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

// An error about a file that cannot be written says what to do.
func TestReadOnlyPlaces(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"s.yaml": "steps: [{text: Done.}]\n"})
	if _, stderr, code := belay(t, dir, "run", "--model", "scripted/s.yaml", "--as", "first", "a task"); code != 0 {
		t.Fatal(stderr)
	}
	bare := project(t, map[string]string{"s.yaml": "steps: [{text: Done.}]\n"})
	for _, locked := range []string{filepath.Join(dir, ".belay", "belay.db-holders"), filepath.Join(dir, ".belay"), bare} {
		if err := os.Chmod(locked, 0o555); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(locked, 0o755) })
	}
	const copyIt = "and name the copy with --store FILE"
	for _, test := range []struct {
		dir  string
		args []string
		want string
	}{
		{dir, []string{"sessions"}, copyIt},
		{dir, []string{"show", "first"}, copyIt},
		{dir, []string{"store", "export", "first"}, copyIt},
		{bare, []string{"run", "--model", "scripted/s.yaml", "a task"}, "keep sessions elsewhere: --store FILE"},
		{bare, []string{"init"}, "choose a directory that you may write to with -C DIR"},
	} {
		if told, code := confinedBelay(t, test.dir, test.args...); code != 1 || !strings.Contains(told, test.want) {
			t.Errorf("belay %s ended with %d:\n%s", strings.Join(test.args, " "), code, told)
		}
	}
	store := filepath.Join(t.TempDir(), "x.db")
	if told, code := confinedBelay(t, bare, "--store", store, "run", "--model", "scripted/s.yaml", "a task"); code != 0 {
		t.Errorf("with --store it ended with %d:\n%s", code, told)
	}
}
