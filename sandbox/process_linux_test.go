package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/proc"
	"github.com/belay-run/belay/sandbox"
)

// never is a time that no test waits for.
const never = time.Hour

func TestExitCodesComeThrough(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		p := newPlace(t)
		for _, code := range []int{0, 1, 2, 7, 126, 127, 128, 137, 255} {
			if exit, output := p.run(t, s, "sh", "-c", "exit "+strconv.Itoa(code)); exit.Code != code || exit.Signal != nil || output != "" {
				t.Errorf("exit = %+v, output = %q, want %d", exit, output, code)
			}
		}
	})
}

func TestSignalsThatKillComeThrough(t *testing.T) {
	t.Parallel()
	signals := []syscall.Signal{
		syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGSEGV,
		syscall.SIGTRAP, syscall.SIGPIPE, syscall.SIGUSR1, syscall.SIGPROF, 40,
	}
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		for _, sig := range signals {
			t.Run(sig.String(), func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				exit, output := p.run(t, s, "sh", "-c", fmt.Sprintf("ulimit -c 0; kill -%d $$", int(sig)))
				switch {
				case ossignal.Ignored(sig): // for example SIGHUP under nohup: the program ignores it too
					if exit.Code != 0 || exit.Signal != nil {
						t.Errorf("exit = %+v, want it to go on: %s", exit, output)
					}
				case s.Holds(sandbox.Endings) && exit.Signal != sig:
					t.Errorf("exit = %+v, want it killed by %v: %s", exit, sig, output)
				case !s.Holds(sandbox.Endings) && exit.Code != 128+int(sig):
					t.Errorf("exit = %+v, want exit code %d: %s", exit, 128+int(sig), output)
				}
			})
		}
	})
}

// The process group gets SIGTERM before SIGKILL, and its last output is not lost.
func TestTheGroupEndsGently(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		if !s.Holds(sandbox.Endings) {
			t.Skip("it is said not to hold this")
		}
		p := newPlace(t)
		out := newSignal("ready")
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		go func() {
			<-out.come
			cancel(cause)
		}()
		// The shell's child is in the same group, so it also gets the signal.
		argv, err := s.Command(p.policy, []string{"sh", "-c", `trap 'wait; echo bye; exit 7' TERM
			sh -c 'trap "echo child; exit" TERM; echo ready; while :; do sleep 0.01; done' & wait`})
		if err != nil {
			t.Fatal(err)
		}
		exit, err := proc.Run(ctx, &proc.Command{Argv: argv, Dir: p.in, Env: p.env(), Stdout: out, Grace: never})
		if err != nil {
			t.Fatal(err)
		}
		if !errors.Is(exit.Stopped, cause) || exit.Code != 7 || !strings.Contains(out.String(), "child\nbye\n") {
			t.Errorf("exit = %+v, output = %q: want the program's own end, and its child's", exit, out)
		}
	})
}

// SPEC C-06, P-12
func TestEndingTheGroupEndsAllOfIt(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		p := newPlace(t)
		name := uniqueName()
		out := newSignal("ready")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			<-out.come
			cancel()
		}()
		// One process is in the group and one in its own session. Both ignore SIGTERM.
		argv, err := s.Command(p.policy, []string{"sh", "-c", `trap '' TERM HUP
			sh -c 'trap "" TERM HUP; while :; do sleep 0.05; done' ` + name + `child &
			setsid sh -c 'trap "" TERM HUP; echo ready; while :; do sleep 0.05; done' ` + name + `setsid &
			while :; do sleep 0.05; done`})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { kill(processes(name)) })
		exit, err := proc.Run(ctx, &proc.Command{Argv: argv, Dir: p.in, Env: p.env(), Stdout: out, Grace: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if exit.Signal == nil {
			t.Errorf("exit = %+v, want it killed", exit)
		}
		if left := await(func() bool { return len(processes(name+"child")) == 0 }); !left {
			t.Error("the child is still running")
		}
		if s.Holds(sandbox.Descendants) {
			if !await(func() bool { return len(processes(name)) == 0 }) {
				t.Errorf("%v are still running", processes(name))
			}
		} else if len(processes(name+"setsid")) == 0 {
			t.Error("the limit is said not to be held, and it was")
		}
	})
}

// SPEC P-12
func TestASandboxDoesNotOutliveAProcessThatIsKilled(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		p := newPlace(t)
		if s.Holds(sandbox.Missing) {
			p.policy.Protect = []string{p.in + "/.belay"}
		}
		name := uniqueName()
		parent := exec.CommandContext(t.Context(), executable(t), "-test.run=^$")
		parent.Env = append(p.env(), parentTask+"="+string(s.Kind()), "NAME="+name)
		var stderr bytes.Buffer
		parent.Stderr = &stderr
		out, err := parent.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := parent.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { kill(processes(name)) })
		word := make([]byte, len("ready\n"))
		_, readErr := out.Read(word)
		if before := processes(name); len(before) == 0 {
			t.Errorf("the program is not running: %s", &stderr)
		}
		_ = parent.Process.Kill() // SIGKILL
		_ = parent.Wait()         // the error only says that it was killed
		if readErr != nil {
			t.Fatal(readErr, stderr.String())
		}
		if !await(func() bool { return len(processes(name)) == 0 }) {
			t.Errorf("%v are still running", processes(name))
		}
		gone := func() bool { _, err := os.Lstat(p.in + "/.belay"); return os.IsNotExist(err) }
		if !await(gone) {
			t.Error("a placeholder was left behind")
		}
	})
}

// parent runs a program in a sandbox until parent is killed.
func parent(kind string) {
	s := find(sandbox.Kind(kind))
	in := os.Getenv("IN")
	policy := sandbox.Policy{Write: []string{in}}
	if s.Holds(sandbox.Missing) {
		policy.Protect = []string{in + "/.belay"}
	}
	argv, err := s.Command(policy, []string{"sh", "-c", `trap '' TERM HUP; echo ready; while :; do sleep 0.05; done`, os.Getenv("NAME")})
	if err != nil {
		panic(err)
	}
	exit, err := proc.Run(context.Background(), &proc.Command{Argv: argv, Dir: in, Env: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr})
	panic(fmt.Sprint("the command has ended, and was to be killed: ", exit, err))
}

// When a program ends, its background processes continue, as without a sandbox, and they
// stay in the sandbox. Only bubblewrap ends them.
func TestWhatIsLeftInTheBackground(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		p := newPlace(t)
		exit, output := p.run(t, s, "sh", "-c", `setsid sh -c 'while [ ! -e go ]; do sleep 0.01; done
			mkdir .belay; echo bad > "$OUT/bad"; echo done > done' >/dev/null 2>&1 & exit 5`)
		if exit.Code != 5 || exit.Held {
			t.Fatalf("exit = %+v, %s: want the program's own end, and nobody left to hold its output", exit, output)
		}
		write(t, p.in+"/go", "")
		if s.Kind() == sandbox.Bubblewrap {
			return // bwrap ends the background processes, because it cannot see why its program ended
		}
		if !await(func() bool { _, err := os.Lstat(p.in + "/done"); return err == nil }) {
			t.Fatal("it did not go on")
		}
		if _, err := os.Lstat(p.out + "/bad"); !os.IsNotExist(err) {
			t.Errorf("err = %v: it got out", err)
		}
	})
}

// A placeholder stays as long as a background process runs.
func TestWhatIsLeftInTheBackgroundCannotMakeProtectedFiles(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.policy.Protect = []string{p.in + "/.belay"}
	p.run(t, need(t, sandbox.Namespaces), "sh", "-c", `setsid sh -c 'while [ ! -e go ]; do sleep 0.01; done
		rmdir .belay; mkdir .belay && mkdir .belay/bad; echo done > done' >/dev/null 2>&1 & exit 0`)
	write(t, p.in+"/go", "")
	if !await(func() bool { _, err := os.Lstat(p.in + "/done"); return err == nil }) {
		t.Fatal("it did not go on")
	}
	if !await(func() bool { _, err := os.Lstat(p.in + "/.belay"); return os.IsNotExist(err) }) {
		t.Error("there is something left")
	}
}

var names atomic.Int64

// uniqueName returns a unique name with which a test finds its processes.
func uniqueName() string { return fmt.Sprintf("belay-test-%d-%d-", os.Getpid(), names.Add(1)) }

// await waits until done returns true, for things that the kernel does with a delay.
func await(done func() bool) bool {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		if done() {
			return true
		}
	}
	return false
}

// processes returns the running processes with the given name in their arguments.
func processes(name string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is valid
	for _, file := range files {
		args, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(args, []byte(name)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// kill kills processes that a test has left running.
func kill(pids []int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
}
