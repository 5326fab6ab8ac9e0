//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// child is a process of belay, in a directory of its own.
type child struct {
	*exec.Cmd

	t              *testing.T
	stdout, stderr *bufio.Reader
	output         *os.File // the pipe behind stdout
}

// project makes a directory with these scripts.
func project(t *testing.T, scripts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// hanging is the timeout after which a process counts as hanging.
const hanging = 3 * time.Minute

// command returns a command that runs belay without the user's own settings.
func command(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), hanging)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "belay", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "USER=ada", "TERM=xterm", "XDG_CONFIG_HOME=" + dir, "TMPDIR=" + t.TempDir()}
	return cmd
}

// start starts belay.
func start(t *testing.T, dir string, args ...string) *child {
	t.Helper()
	c := &child{Cmd: command(t, dir, args...), t: t}
	c.run()
	return c
}

// run starts the process. At the end of the test, it kills the process if it still runs.
func (c *child) run() {
	c.t.Helper()
	c.output = pipe(c.t, c.StdoutPipe)
	c.stdout, c.stderr = bufio.NewReader(c.output), bufio.NewReader(pipe(c.t, c.StderrPipe))
	if err := c.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = c.Process.Kill() })
}

func pipe(t *testing.T, open func() (io.ReadCloser, error)) *os.File {
	t.Helper()
	r, err := open()
	if err != nil {
		t.Fatal(err)
	}
	file, ok := r.(*os.File)
	if !ok {
		t.Fatalf("the pipe is a %T", r)
	}
	return file
}

// await reads a stream until a line contains a text. It returns everything it read.
func (c *child) await(from *bufio.Reader, text string) string {
	c.t.Helper()
	var read strings.Builder
	for {
		line, err := from.ReadString('\n')
		read.WriteString(line)
		if strings.Contains(line, text) {
			return read.String()
		}
		if err != nil {
			c.t.Fatalf("%q did not come (%v), but:\n%s", text, err, read.String())
		}
	}
}

func (c *child) signal(s os.Signal) {
	c.t.Helper()
	if err := c.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// ended waits for the end of the process. It returns the rest of standard error and the
// exit code.
func (c *child) ended() (string, int) {
	c.t.Helper()
	rest, err := io.ReadAll(c.stderr)
	if err != nil {
		c.t.Fatal(err)
	}
	err = c.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	return string(rest), c.ProcessState.ExitCode()
}

// belay runs belay and returns its output.
func belay(t *testing.T, dir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := command(t, dir, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// stateOf returns the state of the first session.
func stateOf(t *testing.T, dir string) string {
	t.Helper()
	out, errs, code := belay(t, dir, "sessions", "--json")
	if code != 0 {
		t.Fatalf("sessions: exit code %d: %s", code, errs)
	}
	for line := range strings.Lines(out) {
		var s struct {
			ID    string `json:"id"`
			State string `json:"state"`
		}
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		if s.ID == "first" {
			return s.State
		}
	}
	t.Fatalf("there is no session in:\n%s", out)
	return ""
}
