//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// slowGate is a hook that writes a file when it starts, and then waits for a line.
const slowGate = `
hooks:
  - id: slow-gate
    phase: tool.pre
    command: [sh, -c, 'echo inside > ../../inside; read -r line < ../../gate']
    timeout: 10m
`

// A hook whose process was killed is listed as interrupted. When the turn is resumed, the
// list shows a second attempt.
//
// SPEC J-04, J-08
func TestHookOfAKilledProcessIsListed(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"on.yaml": goesOn})
	if err := os.MkdirAll(filepath.Join(dir, ".belay", "hooks"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".belay", "hooks", "slow.yaml"), []byte(slowGate), 0o600); err != nil {
		t.Fatal(err)
	}
	pipes := make(map[string]*os.File)
	for _, name := range []string{"inside", "gate"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
		pipe, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = pipe.Close() })
		pipes[name] = pipe
	}
	if _, errs, code := belay(t, dir, "trust", "--yes"); code != 0 {
		t.Fatal(errs)
	}
	c := start(t, dir, "run", "--model", "scripted/on.yaml", "--as", "first", "a task")
	if _, err := pipes["inside"].Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	list := func(state string) string {
		out, errs, code := belay(t, dir, "runs", "--phase", "tool.pre", "--state", state)
		if code != 0 {
			t.Error(errs)
		}
		return out
	}
	if out := list("started"); strings.Count(out, "slow-gate ") != 1 {
		t.Errorf("the hook is inside, and the list of runs says:\n%s", out)
	}
	c.signal(os.Kill)
	c.ended()
	if out := list("interrupted"); strings.Count(out, "slow-gate ") != 1 {
		t.Errorf("the process was killed inside of the hook, and the list of runs says:\n%s", out)
	}
	if _, err := pipes["gate"].WriteString("\n\n\n\n"); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := belay(t, dir, "resume", "first", "--model", "scripted/on.yaml"); code != 0 || !strings.HasSuffix(out, "I have looked.\n") {
		t.Errorf("resume: exit code %d, %q, %s", code, out, errs)
	}
	if out := list("completed"); strings.Count(out, "slow-gate #2") != 1 {
		t.Errorf("the hook ran again, and the list of runs says:\n%s", out)
	}
}
