package memory_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/memory"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/sqlite"
)

type seq = iter.Seq2[belay.Event, error]

// These variables are set in a child process, which runs the test binary. The child adds
// memories, or it runs a turn and its job. In the second case it stops at a given point,
// where the test kills it.
const (
	childTask = "BELAY_MEMORY_TEST_CHILD"
	childDir  = "BELAY_MEMORY_TEST_DIR"
)

// reporter is an extractor that returns a different text each time, so that the test
// notices if a turn is extracted twice.
type reporter struct {
	calls atomic.Int64
	at    func() // called during each extraction
}

func (r *reporter) Extract(_ context.Context, turn memory.Exchange) ([]memory.Draft, error) {
	if r.at != nil {
		r.at()
	}
	return []memory.Draft{
		{Text: fmt.Sprintf("%s (heard by process %d, time %d)", turn.Said, os.Getpid(), r.calls.Add(1))},
		{Text: fmt.Sprintf("And a second one (of process %d)", os.Getpid())},
	}, nil
}

// pausing is a clock. Each call of Now counts left down. At zero, the clock stops the
// process.
type pausing struct {
	left *atomic.Int64
	stop func()
}

func (p pausing) Now() time.Time {
	if p.left.Add(-1) == 0 {
		p.stop()
	}
	return time.Now()
}

func (p pausing) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

// child runs the task of the child process.
func child(task string) int {
	do := childWorks
	if task == "write" {
		do = childWrites
	}
	if err := do(context.Background(), task, os.Getenv(childDir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// childWrites adds memories and forgets every fourth of them.
func childWrites(ctx context.Context, _, dir string) (err error) {
	memories, err := memory.Open(ctx, filepath.Join(dir, "memory.db"), &memory.StoreOptions{BusyTimeout: time.Minute})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, memories.Close()) }()
	for i := range written {
		added, err := memories.Add(ctx, memory.Draft{Text: fmt.Sprintf("Thing %d of process %d.", i, os.Getpid())}, memory.Draft{Text: fmt.Sprintf("All say %d.", i)})
		if err == nil && i%4 == 0 {
			_, err = memories.Forget(ctx, added[0].ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// written is how many memories each process adds.
const written = 40

// Several processes can create and write the same file without losing anything.
func TestProcessesWriteTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const processes = 3
	var running []*exec.Cmd
	for range processes {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), childTask+"=write", childDir+"="+dir)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Errorf("a process that writes: %v", err)
		}
	}
	memories := open(t, filepath.Join(dir, "memory.db"))
	if got, want := len(texts(t, memories, memory.Active)), processes*written*3/4+written; got != want {
		t.Errorf("%d memories are active, want %d", got, want)
	}
	sound(t, filepath.Join(dir, "memory.db"))
}

func childWorks(ctx context.Context, task, dir string) error {
	stop := func() {
		fmt.Fprintln(os.Stdout, "ready")
		select {} // wait until the process is killed
	}
	sessions, err := sqlite.Open(ctx, filepath.Join(dir, "belay.db"), &sqlite.Options{JobPoll: 5 * time.Millisecond})
	if err != nil {
		return err
	}
	left := new(atomic.Int64)
	memories, err := memory.Open(ctx, filepath.Join(dir, "memory.db"), &memory.StoreOptions{Clock: pausing{left, stop}})
	if err != nil {
		return err
	}
	extractor := new(reporter)
	switch task {
	case "before the turn is gone through":
		extractor.at = stop
	case "in the transaction, before the first memory":
		left.Store(1)
	case "in the transaction, between two memories":
		left.Store(3)
	}
	extension, err := memory.New(memories, &memory.Options{Transcript: sessions, Extractor: extractor})
	if err != nil {
		return err
	}
	agent, err := belay.New(scripted.New([]scripted.Step{{Text: "Hello, Ann."}}, nil), &belay.Options{Store: sessions, Extensions: []belay.Extension{extension}})
	if err != nil {
		return err
	}
	if _, err := agent.Session("one").Turn(ctx, "My name is Ann."); err != nil {
		return err
	}
	return sessions.Queue().(hook.WorkQueue).Work(ctx, func(ctx context.Context, job hook.Job) (hook.Run, time.Time) {
		run := agent.Hooks().Perform(ctx, job)
		if task == "when all is stored, before that is on record" {
			stop()
		}
		return run, time.Time{}
	})
}

// Facts of a turn are extracted exactly once, even if the process is killed during the
// extraction.
//
// SPEC E-08, J-04
func TestExtractedOnceThoughKilled(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		killed string
		stored int // memories that the killed process had stored
	}{
		{"before the turn is gone through", 0},
		{"in the transaction, before the first memory", 0},
		{"in the transaction, between two memories", 0},
		{"when all is stored, before that is on record", 2},
	} {
		t.Run(test.killed, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			killed := killChild(t, test.killed, dir)

			memories := open(t, filepath.Join(dir, "memory.db"))
			if got := len(texts(t, memories)); got != test.stored {
				t.Errorf("the process that was killed left %d memories, want %d", got, test.stored)
			}
			sessions := openSessions(t, filepath.Join(dir, "belay.db"))
			extractor := new(reporter)
			agent := newAgent(t, memories, sessions, memory.Options{Extractor: extractor}, belay.Options{})
			runs := work(t, agent.Agent, sessions, 1)
			if runs[0].Subscription != "memory.extract" || runs[0].State != hook.Completed || runs[0].Attempt != 2 {
				t.Errorf("the job that was interrupted: %s %s, attempt %d, want memory.extract completed at the second", runs[0].Subscription, runs[0].State, runs[0].Attempt)
			}
			if !idle(t, sessions) {
				t.Error("there is more to do, want that the turn is over and done with")
			}
			by, calls := killed, 0
			if test.stored == 0 {
				by, calls = os.Getpid(), 1
			}
			wantTexts(t, "remembered", texts(t, memories), fmt.Sprintf("And a second one (of process %d)", by), fmt.Sprintf("My name is Ann. (heard by process %d, time 1)", by))
			if got := int(extractor.calls.Load()); got != calls {
				t.Errorf("the turn was gone through %d times after the kill, want %d", got, calls)
			}
			sound(t, filepath.Join(dir, "memory.db"))
		})
	}
}

// killChild starts a process, waits until it has reached the point, and kills it.
func killChild(t *testing.T, task, dir string) (pid int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childTask+"="+task, childDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_ = cmd.Process.Kill() // SIGKILL on Unix
	_ = cmd.Wait()
	if err != nil || line != "ready\n" {
		t.Fatalf("the other process says %q, %v, want that it is ready", line, err)
	}
	return cmd.Process.Pid
}
