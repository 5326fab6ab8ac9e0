//go:build unix

package proc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belay-run/belay/internal/proc"
)

// parentTask is a variable with a script. If it is set, the test binary runs the script and
// waits for its end.
const parentTask = "BELAY_PROC_PARENT"

func TestMain(m *testing.M) {
	if script := os.Getenv(parentTask); script != "" {
		command := sh(script)
		command.Stdout = os.Stdout
		_, err := proc.Run(context.Background(), command)
		panic(fmt.Sprint("the command has ended, and was to be killed: ", err))
	}
	goleak.VerifyTestMain(m)
}

// never is longer than any test runs.
const never = time.Hour

var path = []string{"PATH=" + os.Getenv("PATH")}

func sh(script string) *proc.Command {
	return &proc.Command{Argv: []string{"sh", "-c", script}, Env: path}
}

// run runs a command. It returns how the command ended and what it wrote.
func run(t *testing.T, command *proc.Command) (exit proc.Exit, stdout, stderr string) {
	t.Helper()
	out, errs := proc.NewCap(1<<20), proc.NewCap(1<<20)
	command.Stdout, command.Stderr = out, errs
	exit, err := proc.Run(t.Context(), command)
	if err != nil {
		t.Fatal(err)
	}
	return exit, string(out.Bytes()), string(errs.Bytes())
}

// signal is a writer that closes a channel when a word was written.
type signal struct {
	proc.Window

	seen bytes.Buffer
	word string
	come chan struct{}
}

func newSignal(word string) *signal {
	return &signal{Window: *proc.NewWindow(1 << 10), word: word, come: make(chan struct{})}
}

func (s *signal) Write(p []byte) (int, error) {
	before := strings.Contains(s.seen.String(), s.word)
	s.seen.Write(p)
	if !before && strings.Contains(s.seen.String(), s.word) {
		close(s.come)
	}
	return len(p), nil
}

// cancelWhen returns a context that is cancelled when the word was written.
func cancelWhen(t *testing.T, s *signal, cause error) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	go func() {
		select {
		case <-s.come:
			cancel(cause)
		case <-ctx.Done():
		}
	}()
	return ctx
}

// endLater kills a process that the child of a test left behind.
func endLater(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(pid))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(n, syscall.SIGKILL) })
}

func TestRunReportsOutputAndCode(t *testing.T) {
	t.Parallel()
	exit, stdout, stderr := run(t, sh("echo out; echo err >&2; exit 3"))
	if exit.Code != 3 || exit.Signal != nil || exit.Stopped != nil || exit.Held {
		t.Errorf("exit = %+v, want the code 3 and nothing else", exit)
	}
	if stdout != "out\n" || stderr != "err\n" {
		t.Errorf("stdout = %q, stderr = %q", stdout, stderr)
	}
}

func TestRunMergesInTheOrderOfWriting(t *testing.T) {
	t.Parallel()
	out := proc.NewCap(1 << 10)
	command := sh("echo 1; echo 2 >&2; echo 3; echo 4 >&2")
	command.Stdout, command.Merged = out, true
	if _, err := proc.Run(t.Context(), command); err != nil {
		t.Fatal(err)
	}
	if got := string(out.Bytes()); got != "1\n2\n3\n4\n" {
		t.Errorf("output = %q", got)
	}
}

func TestRunTellsASignalFromACode(t *testing.T) {
	t.Parallel()
	exit, _, _ := run(t, sh("kill -9 $$"))
	if exit.Code != -1 || exit.Signal != syscall.SIGKILL || exit.Stopped != nil {
		t.Errorf("exit = %+v, want ended by SIGKILL and not by us", exit)
	}
}

func TestRunTellsWhatCannotStart(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		rule string
		argv []string
		want error
	}{
		{"a name that PATH does not have", []string{"belay-no-such-program"}, exec.ErrNotFound},
		{"a path that does not exist", []string{"/belay/no/such/program"}, fs.ErrNotExist},
		{"a file that may not be run", []string{plain}, fs.ErrPermission},
	} {
		if _, err := proc.Run(t.Context(), &proc.Command{Argv: test.argv, Stdin: []byte("x")}); !errors.Is(err, test.want) {
			t.Errorf("%s: err = %v, want %v", test.rule, err, test.want)
		}
	}
	if _, err := proc.Run(t.Context(), &proc.Command{}); err == nil {
		t.Error("no command: want an error")
	}
}

func TestRunInheritsNoEnvironment(t *testing.T) {
	t.Setenv("BELAY_PROC_TEST", "leaked")
	_, stdout, _ := run(t, &proc.Command{Argv: []string{"/bin/sh", "-c", "echo [$BELAY_PROC_TEST]"}})
	if stdout != "[]\n" {
		t.Errorf("output = %q, want no variable of the host", stdout)
	}
}

func TestRunHasNoTerminal(t *testing.T) {
	t.Parallel()
	exit, stdout, _ := run(t, sh(`(: < /dev/tty) 2>/dev/null && echo terminal; [ "$(ps -o sid= -p $$ | tr -d ' ')" = $$ ] && echo leads; exit 0`))
	if strings.Contains(stdout, "terminal\n") || exit.Code != 0 {
		t.Errorf("exit = %+v, output = %q: want no controlling terminal", exit, stdout)
	}
	if _, err := exec.LookPath("ps"); err == nil && !strings.Contains(stdout, "leads") {
		t.Errorf("output = %q: want a session of its own", stdout)
	}
}

func TestRunFeedsStdin(t *testing.T) {
	t.Parallel()
	command := sh("cat")
	command.Stdin = bytes.Repeat([]byte("x"), 256<<10)
	if _, stdout, _ := run(t, command); len(stdout) != 256<<10 {
		t.Errorf("the child read %d bytes, want all", len(stdout))
	}
}

func TestRunSurvivesAChildThatNeverReads(t *testing.T) {
	t.Parallel()
	command := sh("echo done")
	command.Stdin = make([]byte, 1<<20)
	exit, stdout, _ := run(t, command)
	if exit.Code != 0 || stdout != "done\n" {
		t.Errorf("exit = %+v, output = %q", exit, stdout)
	}
}

func TestRunEndsTheGroupGently(t *testing.T) {
	t.Parallel()
	word := newSignal("ready")
	cause := errors.New("enough")
	command := sh("trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done")
	command.Stdout, command.Grace = word, never
	exit, err := proc.Run(cancelWhen(t, word, cause), command)
	if err != nil {
		t.Fatal(err)
	}
	if !errors.Is(exit.Stopped, cause) || exit.Code != 7 || !strings.Contains(word.seen.String(), "bye") {
		t.Errorf("exit = %+v, output = %q: want the cause, and the child's own last words", exit, word.seen.String())
	}
}

func TestRunEndsAGroupThatIgnoresSIGTERM(t *testing.T) {
	t.Parallel()
	word := newSignal("ready")
	// The grandchild ignores SIGTERM too. It would survive if only the child were killed.
	command := sh("trap '' TERM; sh -c 'while :; do sleep 0.05; done' & echo $! ready; wait; while :; do sleep 0.05; done")
	command.Stdout, command.Grace = word, 50*time.Millisecond
	exit, err := proc.Run(cancelWhen(t, word, context.Canceled), command)
	if err != nil {
		t.Fatal(err)
	}
	if exit.Signal != syscall.SIGKILL || exit.Held {
		t.Errorf("exit = %+v, want ended by SIGKILL, and nobody left to hold the output", exit)
	}
	pid, err := strconv.Atoi(strings.Fields(word.seen.String())[0])
	if err != nil {
		t.Fatal(err)
	}
	if !ended(pid) {
		t.Errorf("the grandchild %d is still running", pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// ended waits until a process has ended, or is dead and not yet reaped. After SIGKILL the
// kernel needs a moment.
func ended(pid int) bool {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return true
		}
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err == nil && strings.Contains(string(stat), ") Z ") {
			return true
		}
	}
	return false
}

func TestRunDoesNotWaitForAGrandchildThatHoldsTheOutput(t *testing.T) {
	t.Parallel()
	// Output that the child wrote just before its end is not lost, although the pipe stays
	// open.
	exit, stdout, _ := run(t, sh("sleep 3600 & echo $!; head -c 60000 /dev/zero | tr '\\0' x"))
	pid, rest, _ := strings.Cut(stdout, "\n")
	endLater(t, pid)
	if exit.Code != 0 || !exit.Held || exit.Stopped != nil {
		t.Errorf("exit = %+v, want the child's own end, and the output held", exit)
	}
	if len(rest) != 60000 {
		t.Errorf("%d bytes of output, want 60000", len(rest))
	}
}

// slow is a writer that is still busy with its first write when the child ends.
type slow struct {
	*proc.Cap

	begun bool
}

func (s *slow) Write(p []byte) (int, error) {
	if !s.begun {
		s.begun = true
		<-time.After(300 * time.Millisecond)
	}
	return s.Cap.Write(p)
}

func TestRunLosesNothingToASlowWriter(t *testing.T) {
	t.Parallel()
	out := &slow{Cap: proc.NewCap(1 << 20)}
	command := sh("sleep 3600 & echo $!; head -c 60000 /dev/zero | tr '\\0' x")
	command.Stdout = out
	if _, err := proc.Run(t.Context(), command); err != nil {
		t.Fatal(err)
	}
	pid, rest, _ := strings.Cut(string(out.Bytes()), "\n")
	endLater(t, pid)
	if len(rest) != 60000 {
		t.Errorf("%d bytes of output, want 60000", len(rest))
	}
}

func TestRunIsNotHeldByASlowWriter(t *testing.T) {
	t.Parallel()
	out := &slow{Cap: proc.NewCap(1 << 10)}
	command := sh("echo 1")
	command.Stdout = out
	exit, err := proc.Run(t.Context(), command)
	if err != nil || exit.Held || string(out.Bytes()) != "1\n" {
		t.Errorf("exit = %+v, %v, output = %q: want all of it, and nobody left to hold it", exit, err, out.Bytes())
	}
}

func TestRunDoesNotWaitForAGrandchildThatKeepsWriting(t *testing.T) {
	t.Parallel()
	out := proc.NewWindow(1 << 10)
	command := sh("yes & echo $! >&2")
	errs := proc.NewCap(1 << 10)
	command.Stdout, command.Stderr = out, errs
	exit, err := proc.Run(t.Context(), command)
	if err != nil {
		t.Fatal(err)
	}
	endLater(t, string(errs.Bytes()))
	if exit.Code != 0 || !exit.Held {
		t.Errorf("exit = %+v, want the child's own end", exit)
	}
}

func TestRunEndsAChildThatWritesTooMuch(t *testing.T) {
	t.Parallel()
	out := proc.NewCap(1 << 20)
	command := sh("yes")
	command.Stdout = out
	exit, err := proc.Run(t.Context(), command)
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := errors.AsType[*proc.TooMuchError](exit.Stopped); !ok || e.Max != 1<<20 || exit.Code == 0 {
		t.Errorf("exit = %+v, want it stopped for writing too much", exit)
	}
	if len(out.Bytes()) != 1<<20 {
		t.Errorf("%d bytes kept, want 1 MiB", len(out.Bytes()))
	}
}

func TestRunRefusesTooMuchFromAChildThatHasEnded(t *testing.T) {
	t.Parallel()
	command := sh("printf 12345")
	command.Stdout = proc.NewCap(4)
	exit, err := proc.Run(t.Context(), command)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := errors.AsType[*proc.TooMuchError](exit.Stopped); !ok {
		t.Errorf("exit = %+v, want it stopped for writing too much", exit)
	}
}

func TestRunBoundsMemory(t *testing.T) { //nolint:paralleltest // it measures the memory of the process
	const size = 100 << 20
	out := proc.NewWindow(64 << 10)
	command := sh("echo first; head -c " + strconv.Itoa(size) + " /dev/zero; echo; echo last")
	command.Stdout = out
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	exit, err := proc.Run(t.Context(), command)
	if err != nil || exit.Code != 0 {
		t.Fatal(exit, err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
		t.Errorf("reading %d bytes allocated %d", size, took)
	}
	head, forgotten, tail := out.Ends()
	if !bytes.HasPrefix(head, []byte("first\n")) || !bytes.HasSuffix(tail, []byte("\nlast\n")) {
		t.Error("the window lost an end")
	}
	if total := int64(len(head)) + forgotten + int64(len(tail)); total != size+12 {
		t.Errorf("%d bytes accounted for, want %d", total, size+12)
	}
}

func TestRunDoesNotStartWhenItIsTooLate(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := proc.Run(ctx, sh("exit 0")); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want the context's", err)
	}
}
