//go:build linux

package main

import (
	"os"
	"strings"
	"testing"
)

const asksOnce = `
steps:
  - calls: [{tool: write, input: {path: made.txt, content: "x"}}]
  - text: Done.
`

// A terminal asks a question, and the user decides in another process. That process says
// that the first one continues the turn, because the first one holds the session.
func TestDecidingWhatATerminalAsks(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"asks.yaml": asksOnce})
	var told string
	elsewhere := func(string) string {
		if _, refused, code := belay(t, dir, "resume", "first"); code != 1 || !strings.Contains(refused, "another process runs a turn in it") || strings.Contains(refused, "no model") {
			t.Errorf("resume ended with %d: %s", code, refused)
		}
		_, stderr, code := belay(t, dir, "approvals", "approve", "ap-")
		if told = stderr; code != 0 {
			t.Errorf("approve: exit code %d", code)
		}
		return ""
	}
	seen, code := atTerminal(t, dir, "", elsewhere, []string{"NO_COLOR=1"}, "run", "--model", "scripted/asks.yaml", "--mode", "strict", "--as", "first", "a task")
	if code != 0 || !strings.Contains(seen, "Done.") {
		t.Errorf("exit code %d:\n%s", code, seen)
	}
	if want := "allowed: write in session first\nthe process that asked for approval continues the turn; to follow it: belay watch first\n"; told != want {
		t.Errorf("told %q, want %q", told, want)
	}
	if _, err := os.Stat(dir + "/made.txt"); err != nil {
		t.Error(err)
	}
}
