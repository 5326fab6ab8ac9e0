package postgres_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/postgres"
)

// These variables are set in a child process, which runs the test binary and has a store
// open. The child prints "ready". With the task "zombie" it continues when it gets a line of
// input.
const (
	childTask = "BELAY_POSTGRES_CHILD"
	childDSN  = "BELAY_POSTGRES_CHILD_DSN"
)

// takeover is the takeover time of the tests. The lease is then one second, which is long
// enough on a busy machine.
const takeover = 1500 * time.Millisecond

// child runs the task of the child process.
func child(task string) int {
	ctx := context.Background()
	s, err := postgres.Open(ctx, os.Getenv(childDSN), &postgres.Options{Takeover: takeover, JobPoll: 5 * time.Millisecond, Workers: 2})
	if err == nil {
		switch task {
		case "hold":
			_, err = childHolds(ctx, s)
		case "work":
			childWorks(ctx, s)
		case "zombie":
			err = childZombie(ctx, s)
		case "claim":
			if _, err = s.Claim(ctx, belay.TurnFilter{}); err == nil {
				fmt.Fprintln(os.Stdout, "ready")
			}
		case "stuck":
			err = childStuck(ctx, s)
		default:
			err = fmt.Errorf("there is no task %q", task)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	select {} // wait until the process is killed
}

// childHolds holds the sessions "a" and "b". Session "a" has an open turn and a started
// run. childHolds returns the epoch of "a".
func childHolds(ctx context.Context, s *postgres.Store) (epoch int64, err error) {
	for _, session := range []string{"b", "a"} {
		stored, err := s.Open(ctx, session)
		if err != nil {
			return 0, err
		}
		epoch = stored.Epoch
		c := say(session, epoch, 1, "by the other")
		if session == "a" {
			c.State, c.Runs = &belay.SessionState{Turns: 1, Turn: &belay.TurnState{ID: "turn"}}, []hook.Run{run("begun", hook.Started), run("ended", hook.Completed)}
		}
		if err := s.Commit(ctx, c); err != nil {
			return 0, err
		}
	}
	fmt.Fprintln(os.Stdout, "ready")
	return epoch, nil
}

// childWorks starts two jobs that never end.
func childWorks(ctx context.Context, s *postgres.Store) {
	begun := make(chan struct{})
	go func() { // ends when the process is killed
		_ = s.Queue().(hook.WorkQueue).Work(ctx, func(context.Context, hook.Job) (hook.Run, time.Time) {
			begun <- struct{}{}
			select {}
		})
	}()
	for range 2 {
		<-begun
	}
	fmt.Fprintln(os.Stdout, "ready")
}

// childZombie continues to write after it was stopped, and prints the errors.
func childZombie(ctx context.Context, s *postgres.Store) error {
	epoch, err := childHolds(ctx, s)
	if err != nil {
		return err
	}
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	c := say("a", epoch, 2, "by the zombie")
	c.Runs = []hook.Run{run("late", hook.Completed)}
	err = s.Commit(ctx, c)
	fmt.Fprintln(os.Stdout, "commit", errors.Is(err, belay.ErrFenced), err)
	err = s.Commit(ctx, &belay.Commit{Session: "a", Epoch: epoch, State: &belay.SessionState{Turns: 9}})
	fmt.Fprintln(os.Stdout, "state", errors.Is(err, belay.ErrFenced), err)
	err = s.Release(ctx, "a", epoch)
	fmt.Fprintln(os.Stdout, "release", err == nil, err)
	_, err = s.Open(ctx, "a")
	fmt.Fprintln(os.Stdout, "open", errors.Is(err, belay.ErrHeld), err)
	stored, err := s.Open(ctx, "c")
	if err == nil {
		err = s.Commit(ctx, say("c", stored.Epoch, 1, "it lives"))
	}
	fmt.Fprintln(os.Stdout, "again", err == nil, err)
	return nil
}

// childStuck begins a transaction that locks a session and its own holder, and never ends
// it.
func childStuck(ctx context.Context, s *postgres.Store) error {
	if _, err := s.Open(ctx, "a"); err != nil {
		return err
	}
	return s.Stall(ctx, "a", func() {
		fmt.Fprintln(os.Stdout, "ready")
		select {}
	})
}

// process is another process that uses the database.
type process struct {
	*exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

// another starts another process on a database and waits until it is ready. The process is
// killed at the end of the test, if not before.
func another(t testing.TB, task, dsn string) (p *process, kill func()) {
	t.Helper()
	p = &process{Cmd: exec.CommandContext(context.Background(), os.Args[0], "-test.run=^$")}
	p.Env = append(os.Environ(), childTask+"="+task, childDSN+"="+dsn)
	p.Stderr = os.Stderr
	out, errOut := p.StdoutPipe()
	in, errIn := p.StdinPipe()
	if err := errors.Join(errOut, errIn, p.Start()); err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, bufio.NewReader(out)
	killed := false
	kill = func() {
		if !killed {
			killed = true
			_ = p.Process.Kill() // SIGKILL on Unix
			_ = p.Wait()
		}
	}
	t.Cleanup(kill)
	if line := p.line(t); line != "ready" {
		t.Fatalf("the other process says %q, want that it is ready", line)
	}
	return p, kill
}

// line returns the next line that the process prints.
func (p *process) line(t testing.TB) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	return strings.TrimSuffix(line, "\n")
}

// takeOver opens a session of a dead process as soon as possible, and asserts that it did
// not take too long.
func takeOver(t testing.TB, s *postgres.Store, session string, gone time.Time) *belay.Stored {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	often := time.NewTicker(10 * time.Millisecond)
	defer often.Stop()
	stored, err := s.Open(ctx, session)
	for errors.Is(err, belay.ErrHeld) {
		<-often.C
		stored, err = s.Open(ctx, session)
	}
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(gone); took > 10*takeover { // the limit is generous, because the machine may be busy
		t.Errorf("taking over took %s, want %s", took, takeover)
	}
	return stored
}

// Opening a session that another process holds fails, and the error names that process.
// When the lease of that process has expired, the session can be opened, and its runs are
// interrupted. Here the process only stores rows. internal/crash kills processes inside
// hooks.
//
// SPEC L-02
func TestKilled(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, &postgres.Options{Takeover: takeover})
	other, kill := another(t, "hold", s.DSN())

	_, err := s.Open(ctx, "a")
	wantError(t, "Open of a session that another process has", err, belay.ErrHeld, fmt.Sprint("process ", other.Process.Pid))
	kill()
	killed := time.Now()
	_, err = s.Open(ctx, "a")
	wantError(t, "Open before the lease has ended", err, belay.ErrHeld)
	if got := s.Recovery(); got.Holders != 0 {
		t.Errorf("while the lease runs %+v is settled, want nothing", got)
	}
	wantStates(t, s, "begun started", "ended completed")

	stored := takeOver(t, s, "a", killed)
	if stored.Last != 1 || stored.State.Turn == nil {
		t.Errorf("taken over: last message %d, turn %v, want what the other stored", stored.Last, stored.State.Turn)
	}
	commit(t, s, say("a", stored.Epoch, 2, "by me"))
	wantStates(t, s, "begun interrupted", "ended completed")
	got := s.Recovery()
	if got.Holders != 1 || !slices.Equal(got.Sessions, []string{"a", "b"}) || !slices.Equal(got.Open, []string{"a"}) || !slices.Equal(got.Runs, []string{"begun"}) {
		t.Errorf("settled: %+v, want a holder with the sessions a and b, the turn of a and the run", got)
	}
	hold(t, s, "b")
	if held := held(t, s); !slices.Equal(held, []string{"b", "a"}) {
		t.Errorf("%q are held, want both", held)
	}
}

// A living process keeps its sessions, even if it is idle for long.
//
// SPEC L-02
func TestAlive(t *testing.T) {
	t.Parallel()
	ctx, first := t.Context(), open(t, &postgres.Options{Takeover: takeover})
	stored := hold(t, first, "a")
	next := openDSN(t, first.DSN(), &postgres.Options{Takeover: takeover})
	ends := time.After(2 * takeover)
	often := time.NewTicker(takeover / 20)
	defer often.Stop()
	for waiting := true; waiting; {
		select {
		case <-often.C:
			_, err := next.Open(ctx, "a")
			wantError(t, "Open of a session of a process that lives", err, belay.ErrHeld)
		case <-ends:
			waiting = false
		}
	}
	commit(t, first, say("a", stored.Epoch, 1, "the hold is still valid"))
}

// Opening the store cleans up after a killed process. Its jobs are retried if they are
// idempotent. Otherwise they end.
//
// SPEC J-04
func TestKilledAtWork(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, &postgres.Options{Takeover: takeover, JobPoll: 5 * time.Millisecond})
	once, again := hook.Job{ID: "once", Key: "key:once", Handler: "h"}, hook.Job{ID: "again", Key: "key:again", Handler: "h", Idempotent: true}
	if err := s.Queue().Enqueue(ctx, run("asked", hook.Completed), []hook.Job{once, again}); err != nil {
		t.Fatal(err)
	}
	_, kill := another(t, "work", s.DSN())
	wantStates(t, s, "asked completed", "once.1 started", "again.1 started")
	kill()
	killed := time.Now()
	working, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	err := s.Queue().(hook.WorkQueue).Work(working, func(_ context.Context, job hook.Job) (hook.Run, time.Time) {
		ended := job.Begun(time.Now())
		ended.State, ended.Ended = hook.Completed, time.Now()
		stop()
		return ended, time.Time{}
	})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(killed); took > 10*takeover { // the limit is generous, because the machine may be busy
		t.Errorf("it took %s, want %s", took, takeover)
	}
	wantStates(t, s, "asked completed", "once.1 interrupted", "again.1 interrupted", "again.2 completed")
	got := s.Recovery()
	if !slices.Equal(got.Due, []string{"again"}) || !slices.Equal(got.Over, []string{"once"}) || len(got.Runs) != 2 {
		t.Errorf("settled: %+v, want the job again due and the job once over", got)
	}
}

// A store takes over the turn that a killed process had claimed, even if it only claims
// turns: it runs no jobs and opens no session of that process.
//
// SPEC L-02
func TestKilledWithAClaim(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s := open(t, &postgres.Options{Takeover: takeover, TurnPoll: 10 * time.Millisecond})
	submit(t, s, "a")
	_, kill := another(t, "claim", s.DSN())
	kill()
	turn, err := s.Claim(ctx, belay.TurnFilter{})
	if err != nil || turn.Session != "a" {
		t.Fatalf("it claims %+v, %v, want the turn of the dead process", turn, err)
	}
	if got := s.Recovery(); got.Holders != 1 {
		t.Errorf("settled: %+v, want the dead process", got)
	}
}
