package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/proc"
	"github.com/belay-run/belay/sandbox"
)

// giveUp is how long a program that exceeds a bound waits to be killed. If it is not
// killed, it ends itself, so that no process is left.
const giveUp = 3 * time.Minute

// useMuch exceeds a bound, prints "held", and waits to be killed.
func useMuch(what string) {
	const megabyte = 1_000_000
	var held [][]byte
	switch what {
	case "memory":
		for range 300 {
			block := make([]byte, megabyte)
			for i := 0; i < len(block); i += os.Getpagesize() {
				block[i] = 1
			}
			held = append(held, block)
		}
	case "time": // loops until it is killed or giveUp has passed
		until, held := time.Now().Add(giveUp), false
		for n := 1; time.Now().Before(until); n++ {
			if n%1_000_000 == 0 && !held && cpuTime() > 2*time.Second {
				held = true
				fmt.Fprintln(os.Stdout, "held")
			}
		}
		os.Exit(0)
	}
	fmt.Fprintln(os.Stdout, "held")
	time.Sleep(giveUp)
	os.Exit(len(held) / 1000)
}

// cpuTime returns the CPU time of this process.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// bomb starts at most 200 processes. It can be faster than the watcher. Then the kernel
// refuses a new process, and this shell ends. So the scripts below add goOn: they
// continue, like a real fork bomb, until the watcher kills them.
const bomb = `i=0; while [ $i -lt 200 ]; do sleep 180 & i=$((i+1)); done; echo held; wait`

// goOn is an endless loop that starts no process.
const goOn = "; while :; do :; done"

// excess is a program that exceeds a bound.
type excess struct {
	name   string
	bounds sandbox.Bounds
	task   string // the argument of useMuch, or ""
	script string // a shell script, if task is ""
	says   string
}

func excesses() []excess {
	return []excess{
		{
			name: "a memory hog", bounds: sandbox.Bounds{Memory: 150_000_000}, task: "memory",
			says: "it used more than 150 MB of memory: the setting box.memory changes this bound",
		},
		{
			name: "a fork bomb", bounds: sandbox.Bounds{Processes: 60}, script: "sh -c '" + bomb + "'" + goOn,
			says: "it had more than 60 processes and threads: the setting box.processes changes this bound",
		},
		{
			name: "a fork bomb whose processes leave their parent", bounds: sandbox.Bounds{Processes: 60}, script: "sh -c '(" + bomb + ") & exit'" + goOn,
			says: "it had more than 60 processes and threads",
		},
		{
			name: "memory of many small processes", bounds: sandbox.Bounds{Memory: 60_000_000},
			script: `for i in 1 2 3 4 5 6 7 8; do (v=$(head -c 10000000 /dev/zero | tr '\0' x); echo > $i.ready; sleep 180; echo "$v" > /dev/null) & done; until [ -e 8.ready ]; do sleep 0.1; done; echo held; wait`,
			says:   "it used more than 60 MB of memory",
		},
		{
			name: "an endless loop", bounds: sandbox.Bounds{CPUTime: time.Second}, task: "time",
			says: "it used more than 1s of CPU time: the setting box.cpu_time changes this bound",
		},
		{
			name: "an endless loop of short processes", bounds: sandbox.Bounds{CPUTime: time.Second},
			// It has used enough when its children have used two seconds: the second line of times.
			script: `while :; do sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; times > used; { read x; read used x; } < used; case $used in 0m[01][.,]*) ;; *) echo held;; esac; done`,
			says:   "it used more than 1s of CPU time",
		},
	}
}

// launch runs a program until it has ended. If untilHeld is set, it runs only until the
// program has reported its use.
func (x *excess) launch(t *testing.T, s *sandbox.Sandbox, bounds sandbox.Bounds, untilHeld bool) (proc.Exit, string) {
	t.Helper()
	p := newPlace(t)
	bounds.Settings = "box."
	p.policy.Bounds = bounds
	argv := []string{"sh", "-c", x.script}
	env := p.env()
	if x.task != "" {
		argv = []string{executable(t)}
		env = p.env(useTask + "=" + x.task)
	}
	line, err := s.Command(p.policy, argv)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := newSignal("held")
	if untilHeld {
		go func() {
			select {
			case <-out.come:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	exit, err := proc.Run(ctx, &proc.Command{Argv: line, Dir: p.in, Env: env, Stdout: out, Merged: true, Grace: time.Millisecond, Whole: true})
	if err != nil {
		t.Fatal(err)
	}
	return exit, out.String()
}

// A program that exceeds a bound is killed. Its output names the bound and the setting.
// Without the bound, the same program is not killed.
//
// SPEC P-13
func TestBoundsHold(t *testing.T) {
	t.Parallel()
	for _, x := range excesses() {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
				exit, output := x.launch(t, s, x.bounds, false)
				if exit.Code == 0 || exit.Stopped != nil || !strings.Contains(output, "sandbox: the command was killed: "+x.says) {
					t.Errorf("exit = %+v, output = %q, want it killed because %s", exit, output, x.says)
				}
			})
			if asUser() {
				return // root has already tested what happens without the bound
			}
			t.Run("control", func(t *testing.T) {
				t.Parallel()
				exit, output := x.launch(t, need(t, sandbox.Landlock), sandbox.Bounds{}, true)
				if exit.Stopped == nil || !strings.Contains(output, "held") {
					t.Errorf("exit = %+v, output = %q, want it to get what it wants", exit, output)
				}
			})
		})
	}
}

// The message about a bound goes to the program's original standard error. It does not go
// to a file with which the program has replaced standard error.
//
// SPEC P-13
func TestAProgramDoesNotChooseWhereItsEndIsReported(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		p := newPlace(t)
		file := filepath.Join(t.TempDir(), "settings")
		if err := os.WriteFile(file, []byte("mine\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p.policy.Bounds = sandbox.Bounds{Processes: 20}
		if exit, output := p.run(t, s, "sh", "-c", "exec 2<"+file+"; "+bomb); exit.Code == 0 {
			t.Errorf("exit = %+v, output = %q, want it killed", exit, output)
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != "mine\n" {
			t.Errorf("the file that the program can only read is %q, %v", text, err)
		}
	})
}

// Programs that stay within their bounds run normally.
//
// SPEC P-13
func TestWithinTheBounds(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		for name, test := range map[string]struct {
			bounds sandbox.Bounds
			script string
			code   int
		}{
			"its exit code comes through":      {sandbox.Bounds{Memory: 1 << 30, Processes: 500, CPUTime: time.Hour}, "sleep 0.5; echo x; exit 7", 7},
			"processes one after the other":    {sandbox.Bounds{Processes: 10}, "i=0; while [ $i -lt 400 ]; do /bin/true; i=$((i+1)); done; echo x", 0},
			"memory that processes share":      {sandbox.Bounds{Memory: 120_000_000}, `v=$(head -c 15000000 /dev/zero | tr '\0' x); for i in 1 2 3 4 5 6 7 8 9 10; do (sleep 1; :) & done; wait; echo x`, 0},
			"waiting is no use of the machine": {sandbox.Bounds{CPUTime: time.Second}, "sleep 2; echo x", 0},
			"a file that is read":              {sandbox.Bounds{Memory: 50_000_000}, `head -c 200000000 /dev/zero > f; cat f > /dev/null; rm f; echo x`, 0},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				p.policy.Bounds = test.bounds
				if exit, output := p.run(t, s, "sh", "-c", test.script); exit.Code != test.code || output != "x\n" {
					t.Errorf("exit = %+v, output = %q", exit, output)
				}
			})
		}
	})
}

// The bounds apply to background processes even after the program has ended.
//
// SPEC P-13
func TestBoundsHoldInTheBackground(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		if !s.Holds(sandbox.Endings) {
			t.Skip("nothing stays in the background")
		}
		p := newPlace(t)
		name := uniqueName()
		p.policy.Bounds = sandbox.Bounds{CPUTime: time.Second}
		script := fmt.Sprintf(`setsid sh -c 'while [ ! -e go ]; do sleep 0.05; done; while :; do :; done' %s < /dev/null > /dev/null 2>&1 &
			sleep 0.3`, name) // in a sandbox without namespaces, the watcher must see the process once
		if exit, output := p.run(t, s, "sh", "-c", script); exit.Code != 0 || output != "" {
			t.Fatalf("exit = %+v, output = %q", exit, output)
		}
		t.Cleanup(func() { kill(processes(name)) })
		if len(processes(name)) == 0 {
			t.Fatal("nothing was left in the background")
		}
		write(t, p.in+"/go", "")
		if !await(func() bool { return len(processes(name)) == 0 }) {
			t.Error("it goes on")
		}
	})
}

// The kernel also limits the number of processes in the sandbox, because they may start
// faster than the watcher counts. Processes outside are not limited.
//
// SPEC P-13
func TestTheKernelBoundsProcesses(t *testing.T) {
	t.Parallel()
	s := need(t, sandbox.Namespaces)
	p := newPlace(t)
	p.policy.Bounds = sandbox.Bounds{Processes: 100, CPUTime: 100 * time.Second}
	before := read(t, "/proc/sys/kernel/pid_max")
	words := strings.Fields(p.sh(t, s, "cat /proc/sys/kernel/pid_max; grep 'Max processes' /proc/self/limits | tr -s ' ' | cut -d ' ' -f 3; ulimit -t"))
	if after := read(t, "/proc/sys/kernel/pid_max"); before != after {
		t.Errorf("the number of processes of the machine went from %s to %s", before, after)
	}
	if len(words) != 3 || words[2] != "106" {
		t.Fatalf("inside: %q, want a bound of CPU time near 100", words)
	}
	most, err := strconv.Atoi(words[0])
	if err != nil {
		t.Fatal(err)
	}
	if !s.UsesUsers() && !sandbox.KernelSince(6, 14) {
		t.Skip("NOT COVERED: this kernel does not bound the processes of root")
	}
	if sandbox.KernelSince(6, 14) && most > 1000 {
		t.Errorf("the highest process number inside is %d, want it near 400", most)
	}
	if s.UsesUsers() && os.Getuid() != 0 && words[1] != "164" {
		t.Errorf("the limit of processes is %s, want 164", words[1])
	}
}

func TestBadBoundsAreRefused(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *sandbox.Sandbox) {
		for _, b := range []sandbox.Bounds{{Memory: -1}, {Processes: -1}, {CPUTime: -1}} {
			if _, err := s.Command(sandbox.Policy{Bounds: b}, []string{"true"}); err == nil || !strings.Contains(err.Error(), "a bound is negative") {
				t.Errorf("%+v: %v", b, err)
			}
		}
	})
}
