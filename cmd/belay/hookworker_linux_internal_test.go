//go:build linux

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/filetest"
)

const pushEvent = `{"session_id":"s1","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"git push"}}`

// warm runs belay as a hook, with a worker.
type warm struct {
	t       *testing.T
	dir     string
	runtime string
}

func newWarm(t *testing.T) *warm {
	t.Helper()
	runtime, err := os.MkdirTemp("", "bw") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	w := &warm{t, project(t, nil), runtime}
	t.Cleanup(func() {
		for _, pid := range w.workers() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err := os.RemoveAll(runtime); err != nil {
			t.Error(err)
		}
	})
	if err := os.MkdirAll(filepath.Join(w.dir, ".belay", "hooks"), 0o700); err != nil {
		t.Fatal(err)
	}
	return w
}

// command returns a command that gets pushEvent.
func (w *warm) command() (cmd *exec.Cmd, stdout *bytes.Buffer) {
	w.t.Helper()
	cmd = command(w.t, w.dir, "hook", "--agent", "claude-code")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "XDG_CONFIG_HOME=" + w.dir, "XDG_RUNTIME_DIR=" + w.runtime, "TMPDIR=" + w.runtime, "BELAY_MODE=standard"}
	stdout = new(bytes.Buffer)
	cmd.Stdin, cmd.Stdout = strings.NewReader(pushEvent), stdout
	return cmd, stdout
}

// ask runs the command with pushEvent, and returns its output.
func (w *warm) ask() string {
	w.t.Helper()
	cmd, stdout := w.command()
	if err := cmd.Run(); err != nil {
		w.t.Fatalf("belay hook: %v", err)
	}
	return stdout.String()
}

// workers returns the processes of the workers of this test.
func (w *warm) workers() []int {
	var found []int
	entries, err := os.ReadDir("/proc")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err != nil || !strings.HasSuffix(string(line), "hook\x00worker\x00") {
			continue
		}
		if dir, err := os.Readlink("/proc/" + e.Name() + "/cwd"); err == nil && dir == w.dir {
			found = append(found, pid)
		}
	}
	return found
}

// sockets returns the sockets of workers.
func (w *warm) sockets() []string {
	found, err := filepath.Glob(filepath.Join(w.runtime, "belay", "hook-*.sock"))
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

// until waits until a condition holds.
func (w *warm) until(what string, holds func() bool) {
	w.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(hanging)
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			w.t.Fatalf("%s: it does not happen", what)
		}
	}
}

func asksTheUser(out string) bool { return strings.Contains(out, `"permissionDecision":"ask"`) }

// The first event starts a worker, which answers the next events in the same way. It
// notices changed hooks at once. If it is killed, the command answers by itself.
func TestTheWorkerAnswersLikeTheCommand(t *testing.T) { // SPEC B-05
	t.Parallel()
	w := newWarm(t)
	if out := w.ask(); !asksTheUser(out) {
		t.Fatalf("without a worker: %s", out)
	}
	w.until("a worker listens", func() bool { return len(w.sockets()) == 1 })
	info, err := os.Lstat(w.sockets()[0])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket has the mode %v (%v), want 0600", info.Mode(), err)
	}
	if out := w.ask(); !asksTheUser(out) {
		t.Fatalf("with a worker: %s", out)
	}
	workers := w.workers()
	if len(workers) != 1 {
		t.Fatalf("there are %d workers, want 1: the second event did not reach the worker", len(workers))
	}

	hook := filepath.Join(w.dir, ".belay", "hooks", "no-push.yaml")
	if err := os.WriteFile(hook, []byte("hooks: [{id: no-push, phase: tool.pre, match: {tools: [shell]}, action: {deny: no pushes today}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := w.ask(); !strings.Contains(out, "no pushes today") {
		t.Errorf("after a hook was added: %s", out)
	}
	if err := os.WriteFile(hook, []byte("hooks: [{id: no-push, phas: tool.pre}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := w.ask(); !strings.Contains(out, `"permissionDecision":"deny"`) || !strings.Contains(out, "unknown key") {
		t.Errorf("after a hook file got a mistake: %s", out)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(workers[0], syscall.SIGSTOP); err != nil { // a worker that hangs
		t.Fatal(err)
	}
	// The worker may have stopped while it had the store locked. Then the command denies.
	if out := w.ask(); !asksTheUser(out) && !strings.Contains(out, "the file is locked") {
		t.Errorf("with a worker that hangs: %s", out)
	}
	if err := syscall.Kill(workers[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if out := w.ask(); !asksTheUser(out) {
		t.Errorf("after the worker was killed: %s", out)
	}
}

// copyProgram copies this program.
func copyProgram(t *testing.T, to string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	filetest.WriteProgram(t, to, string(content))
}

// A worker ends when the program file is replaced: nobody asks it any more, and it would keep the store open.
func TestTheWorkerOfAnOlderProgramEnds(t *testing.T) { // SPEC Q-03
	t.Parallel()
	w := newWarm(t)
	program := filepath.Join(t.TempDir(), "belay")
	copyProgram(t, program)
	cmd, _ := w.command()
	cmd.Path = program
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	w.until("a worker listens", func() bool { return len(w.sockets()) == 1 })
	if n := len(w.workers()); n != 1 {
		t.Fatalf("there are %d workers, want 1", n)
	}
	if err := os.Chtimes(program, time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	w.until("the worker has ended", func() bool { return len(w.workers()) == 0 }) // without events it ends too, but later than until waits
}

// A worker that is killed while it answers does not change the answer.
func TestAWorkerKilledInTheMiddleChangesNothing(t *testing.T) { // SPEC B-05
	t.Parallel()
	w := newWarm(t)
	w.ask()
	w.until("a worker listens", func() bool { return len(w.sockets()) == 1 })
	started, blocked := filepath.Join(w.dir, "started"), filepath.Join(w.dir, "blocked")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\ntouch '" + started + "'\nwhile [ -e '" + blocked + "' ]; do sleep 0.01; done\necho '{\"decision\":\"deny\",\"reason\":\"from the script\"}'\n"
	user := filepath.Join(w.dir, "belay") // hooks of the user need no trust
	if err := os.MkdirAll(filepath.Join(user, "hooks"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"slow.sh": script, "slow.yaml": "hooks: [{id: slow, phase: tool.pre, run: ./slow.sh, timeout: 60s}]\n"} {
		filetest.WriteProgram(t, filepath.Join(user, "hooks", name), text)
	}
	cmd, stdout := w.command()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.until("the hook runs in the worker", func() bool { _, err := os.Stat(started); return err == nil })
	workers := w.workers()
	if len(workers) != 1 {
		t.Fatalf("there are %d workers, want 1", len(workers))
	}
	if err := errors.Join(syscall.Kill(workers[0], syscall.SIGKILL), os.Remove(blocked)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("belay hook: %v", err)
	}
	if !strings.Contains(stdout.String(), "from the script") {
		t.Errorf("the answer is %q, want the denial of the script", stdout)
	}
}

// A program that pretends to be the worker gets no event.
func TestAFalseWorkerIsNotAsked(t *testing.T) { // SPEC B-05
	t.Parallel()
	w := newWarm(t)
	w.ask()
	w.until("a worker listens", func() bool { return len(w.sockets()) == 1 })
	socket := w.sockets()[0]
	for _, pid := range w.workers() {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is missing")
	}
	got := filepath.Join(w.dir, "got")
	fake := exec.CommandContext(t.Context(), python, "-c", `
import os, socket, sys
path, got = sys.argv[1:]
os.remove(path)
s = socket.socket(socket.AF_UNIX)
s.bind(path)
os.chmod(path, 0o600)
s.listen(8)
print("ready", flush=True)
while True:
    c, _ = s.accept()
    data = c.recv(1)
    if data:
        open(got, "wb").write(data)
    c.sendall(b"\x01\x00" + bytes(8)) # nothing to object
    c.close()
`, socket, got)
	out, err := fake.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := fake.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Process.Kill(); _ = fake.Wait() })
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if out := w.ask(); !asksTheUser(out) {
		t.Errorf("with a false worker: %q", out)
	}
	if _, err := os.Stat(got); err == nil {
		t.Error("the false worker got the event")
	}
}
