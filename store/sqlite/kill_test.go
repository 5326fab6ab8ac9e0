package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/sqlite"
)

// These variables are set in a child process, which runs the test binary. Either its task is
// one of childTasks, or it opens a store, prints "ready" and lives until it is killed.
const (
	childTask = "BELAY_SQLITE_CHILD"
	childFile = "BELAY_SQLITE_FILE"
)

// child runs the task of the child process.
func child(task string) int {
	ctx := context.Background()
	if done := childTasks[task]; done != nil {
		if err := done(ctx, os.Getenv(childFile)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	s, err := sqlite.Open(ctx, os.Getenv(childFile), &sqlite.Options{JobPoll: 5 * time.Millisecond, Workers: 2})
	if err == nil {
		switch task {
		case "hold":
			err = childHolds(ctx, s)
		case "work":
			childWorks(ctx, s)
		case "claim":
			if _, err = s.Claim(ctx, belay.TurnFilter{}); err == nil {
				fmt.Fprintln(os.Stdout, "ready")
			}
		case "chatter":
			err = childChatters(ctx, s)
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

// childTasks are the tasks that end by themselves and print their results.
var childTasks = map[string]func(ctx context.Context, file string) error{
	"visit": func(ctx context.Context, file string) error {
		s, err := sqlite.Open(ctx, file, nil)
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, "visited")
		return s.Close()
	},
}

// runChild runs a task in another process, and returns its output.
func runChild(t testing.TB, task, file string, prepare ...func(*exec.Cmd)) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childTask+"="+task, childFile+"="+file)
	for _, p := range prepare {
		p(cmd)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the other process ends with %v:\n%s", err, out)
	}
	return string(out)
}

// childHolds holds the sessions "a" and "b". Session "a" has an open turn and a started
// run.
func childHolds(ctx context.Context, s *sqlite.Store) error {
	for _, session := range []string{"a", "b"} {
		stored, err := s.Open(ctx, session)
		if err != nil {
			return err
		}
		c := say(session, stored.Epoch, 1, "by the other")
		if session == "a" {
			c.State, c.Runs = &belay.SessionState{Turns: 1, Turn: &belay.TurnState{ID: "turn"}}, []hook.Run{run("begun", hook.Started), run("ended", hook.Completed)}
		}
		if err := s.Commit(ctx, c); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stdout, "ready")
	return nil
}

// childWorks starts two jobs that never end.
func childWorks(ctx context.Context, s *sqlite.Store) {
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

// another starts another process on a file and waits until it is ready. The process is
// killed at the end of the test, if not before.
func another(t testing.TB, task, file string) (pid int, kill func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childTask+"="+task, childFile+"="+file)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	kill = func() {
		if !killed {
			killed = true
			_ = cmd.Process.Kill() // SIGKILL on Unix
			_ = cmd.Wait()
		}
	}
	t.Cleanup(kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the other process says %q, %v, want that it is ready", line, err)
	}
	return cmd.Process.Pid, kill
}

// Opening a session that another process holds fails, and the error names that process.
// When that process is killed, the session can be opened at once, and its runs are
// interrupted. Here the process only stores rows. internal/crashtest kills processes inside
// hooks.
//
// SPEC L-02
func TestKilled(t *testing.T) {
	t.Parallel()
	ctx, file := t.Context(), newFile(t)
	s := openFile(t, file, nil)
	pid, kill := another(t, "hold", file)

	_, err := s.Open(ctx, "a")
	wantError(t, "Open of a session that another process has", err, belay.ErrHeld, fmt.Sprint("process ", pid))
	if got := s.Recovery(); got.Holders != 0 {
		t.Errorf("while the other lives %+v is settled, want nothing", got)
	}
	wantStates(t, s, "begun started", "ended completed")

	kill()
	if got := held(t, s); len(got) != 0 {
		t.Errorf("when the other is dead %q are held, want none", got)
	}
	stored := hold(t, s, "a")
	if stored.Last != 1 || stored.State.Turn == nil {
		t.Errorf("taken over: last message %d, turn %v, want what the other stored", stored.Last, stored.State.Turn)
	}
	commit(t, s, say("a", stored.Epoch, 2, "by me"))
	wantError(t, "a commit with the former epoch", s.Commit(ctx, say("a", stored.Epoch-2, 3, "fenced")), belay.ErrFenced)
	wantStates(t, s, "begun interrupted", "ended completed")
	got := s.Recovery()
	if got.Holders != 1 || !slices.Equal(got.Sessions, []string{"a", "b"}) || !slices.Equal(got.Open, []string{"a"}) || !slices.Equal(got.Runs, []string{"begun"}) {
		t.Errorf("settled: %+v, want a holder with the sessions a and b, the turn of a and the run", got)
	}
	for r, err := range s.Journal().(hook.ListJournal).List(ctx, hook.Filter{States: []hook.State{hook.Interrupted}}) {
		if err != nil || r.Ended.IsZero() || r.Ended.Before(r.Started) {
			t.Errorf("the run ended at %v, %v, want a time behind its start", r.Ended, err)
		}
	}
	hold(t, s, "b")
	wantLocks(t, s, 1)
}

// Opening a store cleans up after a killed process.
//
// SPEC L-02
func TestRecoveryAtOpen(t *testing.T) {
	t.Parallel()
	file := newFile(t)
	_, kill := another(t, "hold", file)
	kill()
	s := openFile(t, file, nil)
	if got := s.Recovery(); got.Holders != 1 || len(got.Sessions) != 2 || len(got.Open) != 1 || len(got.Runs) != 1 {
		t.Errorf("settled: %+v, want a holder, 2 sessions, a turn and a run", got)
	}
	wantStates(t, s, "begun interrupted", "ended completed")
	wantLocks(t, s, 1)
	if next := openFile(t, file, nil); next.Recovery().Holders != 0 {
		t.Errorf("the next one settles %+v, want nothing", next.Recovery())
	}
}

// A job of a killed process is retried if it is idempotent. Otherwise the job ends.
//
// SPEC J-04
func TestKilledAtWork(t *testing.T) {
	t.Parallel()
	ctx, file := t.Context(), newFile(t)
	s := openFile(t, file, &sqlite.Options{JobPoll: 5 * time.Millisecond})
	once, again := hook.Job{ID: "once", Key: "key:once", Handler: "h"}, hook.Job{ID: "again", Key: "key:again", Handler: "h", Idempotent: true}
	if err := s.Queue().Enqueue(ctx, run("asked", hook.Completed), []hook.Job{once, again}); err != nil {
		t.Fatal(err)
	}
	_, kill := another(t, "work", file)
	wantStates(t, s, "asked completed", "once.1 started", "again.1 started")
	kill()
	execute(t, file, "DELETE FROM holders WHERE pid <> "+strconv.Itoa(os.Getpid())) // now only the job shows that the process existed

	next := openFile(t, file, &sqlite.Options{JobPoll: 5 * time.Millisecond})
	got := next.Recovery()
	if !slices.Equal(got.Due, []string{"again"}) || !slices.Equal(got.Over, []string{"once"}) || len(got.Runs) != 2 {
		t.Errorf("settled: %+v, want the job again due and the job once over", got)
	}
	working, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	err := next.Queue().(hook.WorkQueue).Work(working, func(_ context.Context, job hook.Job) (hook.Run, time.Time) {
		ended := job.Begun(time.Now())
		ended.State, ended.Ended = hook.Completed, time.Now()
		stop()
		return ended, time.Time{}
	})
	if err != nil {
		t.Fatal(err)
	}
	wantStates(t, next, "asked completed", "once.1 interrupted", "again.1 interrupted", "again.2 completed")
}

// A store takes over the turn that a killed process had claimed, even if it only claims
// turns: it runs no jobs and opens no session of that process.
//
// SPEC L-02
func TestKilledWithAClaim(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	file := newFile(t)
	s := openFile(t, file, &sqlite.Options{JobPoll: 5 * time.Millisecond})
	turn, err := belay.NewQueuedTurn("a", "main", "go")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Submit(ctx, turn); err != nil {
		t.Fatal(err)
	}
	_, kill := another(t, "claim", file)
	kill()
	due, err := s.Claim(ctx, belay.TurnFilter{})
	if err != nil || due.Session != "a" {
		t.Fatalf("it claims %+v, %v, want the turn of the dead process", due, err)
	}
	if got := s.Recovery(); got.Holders != 1 {
		t.Errorf("settled: %+v, want the dead process", got)
	}
}

// wantLocks asserts the number of lock files.
func wantLocks(t testing.TB, s *sqlite.Store, want int) {
	t.Helper()
	files, err := filepath.Glob(s.Path() + "-holders/*")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "opening") })
	if len(files) != want {
		t.Errorf("there are %d locks %q, want %d", len(files), files, want)
	}
}
