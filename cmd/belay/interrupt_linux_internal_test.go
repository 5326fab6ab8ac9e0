//go:build linux

package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// awaitFull waits until the process can write no more to its standard output, because nobody
// reads it: the number of bytes in the pipe no longer changes.
func (c *child) awaitFull() {
	c.t.Helper()
	conn, err := c.output.SyscallConn()
	if err != nil {
		c.t.Fatal(err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for last, equal := 0, 0; equal < 3; {
		<-tick.C
		n := 0
		if controlled := conn.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }); controlled != nil || err != nil {
			c.t.Fatal(controlled, err)
		}
		if n == 0 || n != last {
			last, equal = n, 0
			continue
		}
		equal++
	}
}

// If nobody reads the output, the turn cannot end. Then only a second interrupt ends the
// process.
func TestSecondInterruptForces(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"long.yaml": "steps:\n  - text: " + strings.Repeat("word ", 50_000) + "\n", "on.yaml": goesOn})
	c := start(t, dir, "run", "--json", "--model", "scripted/long.yaml", "--as", "first", "a task")
	c.await(c.stdout, "text_delta")
	c.awaitFull()
	c.signal(os.Interrupt)
	c.await(c.stderr, "stopping: ")
	c.signal(os.Interrupt)
	if rest, code := c.ended(); code != 130 || strings.Contains(rest, "aborted") {
		t.Errorf("exit code %d, want 130, at once: %s", code, rest)
	}
	_, errs, _ := belay(t, dir, "sessions")
	if !strings.Contains(errs, "recovered from a process that ended unexpectedly: 1 session released") {
		t.Errorf("no message says that the session was recovered: %s", errs)
	}
	// It is random whether the end of the turn was stored.
	if state := stateOf(t, dir); state != "interrupted" && state != "aborted" {
		t.Errorf("the session is %q, want interrupted or aborted", state)
	}
}
