//go:build unix

package main

import (
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// hangs is a script that streams a text and then hangs.
const hangs = `
follow_transcript: true
steps:
  - text: Let me look.
    calls: [{tool: list, input: {}}]
  - fault: {hang: true}
`

// goesOn is a script that continues where hangs stopped.
const goesOn = `
follow_transcript: true
steps:
  - text: Let me look.
    calls: [{tool: list, input: {}}]
  - text: I have looked.
  - text: Another answer.
`

// SPEC L-05
func TestInterruptAbortsTheTurn(t *testing.T) {
	t.Parallel()
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP) // under nohup, child processes would otherwise ignore SIGHUP too
	t.Cleanup(func() { signal.Stop(heard) })
	for name, sent := range map[string]os.Signal{"interrupt": os.Interrupt, "terminate": syscall.SIGTERM, "hangup": syscall.SIGHUP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := project(t, map[string]string{"hangs.yaml": hangs, "on.yaml": goesOn})
			c := start(t, dir, "run", "--model", "scripted/hangs.yaml", "--as", "first", "a task")
			c.await(c.stderr, "  list")
			c.signal(sent)
			rest, code := c.ended()
			if code != 130 {
				t.Errorf("exit code %d, want 130", code)
			}
			for _, want := range []string{"stopping: ending the turn; press Ctrl-C again", "the turn was aborted", `next:    belay run --session first --model scripted/hangs.yaml "continue"`} {
				if !strings.Contains(rest, want) {
					t.Errorf("standard error has no %q:\n%s", want, rest)
				}
			}
			if state := stateOf(t, dir); state != "aborted" {
				t.Errorf("the turn ended %q, want aborted", state)
			}
			out, errs, code := belay(t, dir, "run", "--model", "scripted/on.yaml", "--continue", "go on")
			if code != 0 || out != "I have looked.\n" || strings.Contains(errs, "recovered") {
				t.Errorf("going on: exit code %d, %q, %s", code, out, errs)
			}
		})
	}
}

// SPEC L-01
func TestKilledTurnGoesOn(t *testing.T) {
	t.Parallel()
	scripts := map[string]string{"hangs.yaml": hangs, "on.yaml": goesOn}
	killed := func(t *testing.T) string {
		t.Helper()
		dir := project(t, scripts)
		c := start(t, dir, "run", "--model", "scripted/hangs.yaml", "--as", "first", "a task")
		c.await(c.stderr, "  list")
		if out, errs, code := belay(t, dir, "run", "--model", "scripted/on.yaml", "--session", "first", "at once"); code != 1 || !strings.Contains(errs, "another process runs a turn") {
			t.Errorf("a second process: exit code %d, %q, %s", code, out, errs)
		}
		if out, _, code := belay(t, dir, "show", "first"); code != 0 || strings.Contains(out, "belay resume") || !strings.Contains(out, "is running in another process") {
			t.Errorf("while it is held it cannot be resumed: exit code %d, %s", code, out)
		}
		c.signal(os.Kill)
		c.ended()
		return dir
	}
	t.Run("without a task it is resumed", func(t *testing.T) {
		t.Parallel()
		dir := killed(t)
		out, errs, code := belay(t, dir, "run", "--model", "scripted/on.yaml", "--continue")
		if code != 0 || out != "I have looked.\n" {
			t.Errorf("exit code %d, %q", code, out)
		}
		for _, want := range []string{"recovered from a process that ended unexpectedly: 1 session released; a turn was running in first: belay resume first\n", "resuming turn 1-", "after 1 step: a task"} {
			if !strings.Contains(errs, want) {
				t.Errorf("standard error has no %q:\n%s", want, errs)
			}
		}
		if strings.Count(errs, "recovered") != 1 {
			t.Errorf("recovery is told in one line:\n%s", errs)
		}
	})
	t.Run("with a task it is ended, and that is told", func(t *testing.T) {
		t.Parallel()
		dir := killed(t)
		out, errs, code := belay(t, dir, "run", "--model", "scripted/on.yaml", "--continue", "another task")
		if code != 0 || out != "I have looked.\n" {
			t.Errorf("exit code %d, %q", code, out)
		}
		if !strings.Contains(errs, "session first: the previous turn was interrupted after 1 step; Belay now ends it as aborted") {
			t.Errorf("no message mentions the turn before:\n%s", errs)
		}
	})
	t.Run("resume goes on with it", func(t *testing.T) {
		t.Parallel()
		dir := killed(t)
		if state := stateOf(t, dir); state != "interrupted" {
			t.Errorf("the session is %q, want interrupted", state)
		}
		if out, _, code := belay(t, dir, "resume", "first", "--model", "scripted/on.yaml"); code != 0 || out != "I have looked.\n" {
			t.Errorf("exit code %d, %q", code, out)
		}
	})
}

// writesLater is a script that reads, and would write if it could continue.
const writesLater = `
follow_transcript: true
steps:
  - text: Let me look.
    calls: [{tool: list, input: {}}]
  - calls: [{tool: write, input: {path: made.txt, content: "x"}}]
  - text: Done.
`

// After a crash a read-only turn is still read-only.
func TestKilledTurnKeepsItsMode(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"s.yaml": hangs})
	c := start(t, dir, "run", "--mode", "read-only", "--model", "scripted/s.yaml", "--as", "first", "a task")
	c.await(c.stderr, "  list")
	c.signal(os.Kill)
	c.ended()
	if err := os.WriteFile(dir+"/s.yaml", []byte(writesLater), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := belay(t, dir, "resume")
	if code != 0 || out != "Done.\n" || !strings.Contains(errs, "read-only mode allows nothing above zone 0") {
		t.Errorf("exit code %d, %q, %s", code, out, errs)
	}
	if _, err := os.Stat(dir + "/made.txt"); err == nil {
		t.Error("a turn in read-only mode wrote")
	}
}

// If the output is closed, the turn ends cleanly.
func TestBrokenPipeEndsTheTurn(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"long.yaml": "steps:\n  - text: " + strings.Repeat("word ", 50_000) + "\n"})
	cmd := command(t, dir, "run", "--json", "--model", "scripted/long.yaml", "--as", "first", "a task")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(errs.String(), "the output was closed") {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	if state := stateOf(t, dir); state != "aborted" {
		t.Errorf("the turn ended %q, want aborted", state)
	}
}

// SPEC J-08
func TestRunsAreFollowedLive(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"on.yaml": goesOn})
	if _, errs, code := belay(t, dir, "run", "--model", "scripted/on.yaml", "--as", "first", "a task"); code != 0 {
		t.Fatal(errs)
	}
	c := start(t, dir, "runs", "--all", "--follow", "--phase", "turn.pre_policy")
	c.await(c.stdout, " first/1-")
	if _, errs, code := belay(t, dir, "run", "--model", "scripted/on.yaml", "--as", "second", "a task"); code != 0 {
		t.Fatal(errs)
	}
	if read := c.await(c.stdout, " second/1-"); strings.Contains(read, " first/") {
		t.Errorf("what was listed is told again:\n%s", read)
	}
	c.signal(os.Interrupt)
	if rest, code := c.ended(); code != 130 || rest != "" {
		t.Errorf("exit code %d, want 130, without a word: %s", code, rest)
	}
}
