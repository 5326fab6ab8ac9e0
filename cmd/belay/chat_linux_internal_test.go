//go:build linux

package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// conversation is a chat at a terminal that cannot move its cursor.
type conversation struct {
	*exec.Cmd
	t        *testing.T
	keyboard *os.File
	from     *bufio.Reader
}

// chat starts belay chat.
func chat(t *testing.T, dir string, args ...string) *conversation {
	t.Helper()
	keyboard, screen := openTerminal(t)
	c := &conversation{Cmd: command(t, dir, append([]string{"chat"}, args...)...), t: t, keyboard: keyboard, from: bufio.NewReader(keyboard)}
	c.Env = append(c.Env, "TERM=dumb", "NO_COLOR=1")
	c.Stdin, c.Stdout, c.Stderr = screen, screen, screen
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	if err := screen.Close(); err != nil {
		t.Fatal(err)
	}
	return c
}

// await reads until a text has arrived, and returns everything it read.
func (c *conversation) await(text string) string { //nolint:unparam // tests that come will want it
	c.t.Helper()
	var seen []byte
	for !bytes.HasSuffix(seen, []byte(text)) {
		b, err := c.from.ReadByte()
		if err != nil {
			c.t.Fatalf("%q did not come (%v), but:\n%s", text, err, seen)
		}
		if b != '\r' {
			seen = append(seen, b)
		}
	}
	return string(seen)
}

// types writes a line to the keyboard.
func (c *conversation) types(line string) {
	c.t.Helper()
	if _, err := c.keyboard.WriteString(line + "\n"); err != nil {
		c.t.Fatal(err)
	}
}

// A chat shows which hook failed, with its output. Between turns it shows that a changed
// file cannot be loaded, and that the file can be loaded again.
//
// SPEC C-13
func TestAChatShowsWhatIsWrongWithHooks(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"s.yaml": "steps:\n  - calls: [{tool: list, input: {}}]\n  - text: Done.\n"})
	put(t, dir, ".belay/hooks/lint.yaml", "hooks:\n  - id: lint\n    phase: tool.post\n    failure: open\n    run: echo config not found >&2; echo see setup.md >&2; exit 1\n"+
		"  - id: later\n    phase: turn.post_turn\n    execution: fire_and_record\n    run: echo nobody waits >&2; exit 1\n")
	if _, stderr, code := belay(t, dir, "trust", "--yes"); code != 0 {
		t.Fatal(stderr)
	}
	c := chat(t, dir, "--model", "scripted/s.yaml", "--as", "first")
	c.await("> ")
	c.types("list it")
	c.await("⚑ hook project/lint failed at tool.post: exit code 1\n  config not found\n  see setup.md\n")
	c.await("⚑ hook project/later failed at turn.post_turn: exit code 1: nobody waits\n")
	put(t, dir, ".belay/hooks/gate.yaml", "hooks:\n  - id: no\n    phase: tool.pre\n    acton: {deny: x}\n")
	c.await("⚑ changed files of the project cannot be loaded: the version that was loaded")
	c.await("\n  .belay/hooks/gate.yaml:4: unknown key \"acton\" (did you mean \"action\"?)\n")
	c.await("> ")
	put(t, dir, ".belay/hooks/gate.yaml", soundHook)
	c.await("⚑ the files of the project are loaded again and active\n")
	c.await("> ")
	c.types("/quit")
	_ = c.Wait()
}
