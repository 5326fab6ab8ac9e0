package riverjobs_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/riverjobs"
)

// These variables configure a victim: a process that runs jobs and is killed.
const (
	victimFile  = "RIVERJOBS_VICTIM_FILE"  // the database file
	victimDeath = "RIVERJOBS_VICTIM_DEATH" // the point at which the process is killed
	victimID    = "victim"
)

// death is a point of an attempt at which the process is killed.
type death string

const (
	afterEnqueue  death = "after the job is stored"
	afterClaim    death = "after the claim, before the beginning is recorded"
	insideBegin   death = "inside the transaction of the beginning"
	afterBegin    death = "after the beginning is recorded"
	whilePerform  death = "in the midst of the work"
	afterPerform  death = "after the work, before its end is recorded"
	insideSettle  death = "inside the transaction of the end"
	afterSettle   death = "after the end is recorded"
	insideRecover death = "inside the transaction of a recovery"
	afterRecover  death = "after the recovery"
)

// These are the numbers of a victim's transactions when it runs one job.
const (
	enqueueWrite = iota + 1
	beginWrite
	settleWrite
)

// beVictim is the main function of a victim.
func beVictim(file string) {
	var err error
	if name := os.Getenv(victimName); name != "" {
		err = workUntilKilled(file, name)
	} else {
		err = dieAt(file, death(os.Getenv(victimDeath)))
	}
	fmt.Fprintln(os.Stderr, "the victim survived:", err)
	os.Exit(3)
}

// kill ends this process without running deferred functions, like a power failure.
func kill() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	fmt.Fprintln(os.Stderr, "kill:", err)
	select {} // wait for the signal
}

// dieAt stores and runs a job, or recovers one. The process is killed at the given point.
func dieAt(file string, at death) error {
	db, err := openFile(file)
	if err != nil {
		return err
	}
	queue, err := db.queue(&riverjobs.Options{ID: victimID, Workers: 1})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if at == insideRecover || at == afterRecover {
		return dieRecovering(ctx, db, queue, at)
	}
	var n atomic.Int32
	db.around = func(_ context.Context, write func() error) error {
		nth := n.Add(1)
		if nth == beginWrite && at == afterClaim || nth == settleWrite && at == afterPerform {
			kill()
		}
		err := write()
		if nth == enqueueWrite && at == afterEnqueue || nth == beginWrite && at == afterBegin || nth == settleWrite && at == afterSettle {
			kill()
		}
		return err
	}
	db.inside = func(context.Context, *sql.Tx) error {
		if nth := n.Load(); nth == beginWrite && at == insideBegin || nth == settleWrite && at == insideSettle {
			kill()
		}
		return nil
	}
	job := killJob(!strings.HasSuffix(file, "once.db"))
	if err := queue.Enqueue(ctx, askedRun(), []hook.Job{job}); err != nil {
		return err
	}
	return queue.Work(ctx, func(_ context.Context, job hook.Job) (hook.Run, time.Time) {
		if err := leaveMark(file, job); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		if at == whilePerform {
			kill()
		}
		return ended(job, hook.Completed), time.Time{}
	})
}

// dieRecovering recovers the job of another victim. The process is killed at the given
// point.
func dieRecovering(ctx context.Context, db *database, queue jobs, at death) error {
	db.inside = func(context.Context, *sql.Tx) error {
		if at == insideRecover {
			kill()
		}
		return nil
	}
	_, err := queue.Recover(ctx, func(id string) bool { return id == victimID })
	if at == afterRecover && err == nil {
		kill()
	}
	return err
}

func askedRun() hook.Run {
	return hook.Run{ID: "asked", Subscription: "sub", Phase: "test.phase", State: hook.Backgrounded, Started: time.Now(), Ended: time.Now()}
}

// killJob returns a job. An idempotent job is retried soon.
func killJob(idempotent bool) hook.Job {
	job := hook.Job{ID: "job", Key: "key", Handler: "work", Subscription: "sub", Phase: "test.phase", Run: "asked", Idempotent: idempotent}
	if idempotent {
		job.Retry = hook.Retry{Attempts: 3, Delay: 20 * time.Millisecond}
	}
	return job
}

// ended returns the run of an attempt that has ended.
func ended(job hook.Job, state hook.State) hook.Run {
	run := job.Begun(time.Now())
	run.State, run.Ended = state, time.Now()
	return run
}

// leaveMark is the work of a job: it writes a line to a file beside the database.
func leaveMark(file string, job hook.Job) error {
	marks, err := os.OpenFile(file+".marks", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(marks, job.Attempt)
	return errors.Join(err, marks.Sync(), marks.Close())
}

// marks returns the numbers of the attempts that called leaveMark.
func marks(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file + ".marks")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// sacrifice runs a victim until it is killed.
func sacrifice(t *testing.T, file string, at death) {
	t.Helper()
	victim := exec.CommandContext(t.Context(), os.Args[0])
	victim.Env = append(os.Environ(), victimFile+"="+file, victimDeath+"="+string(at))
	out, err := victim.CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() == 3 {
		t.Fatalf("the victim did not die %s: %v\n%s", at, err, out)
	}
}

// SPEC J-03, J-04, J-05
func TestKill(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		death  death
		again  death    // where the recovering process is killed, or empty
		marks  []string // attempts that had done the work when the process was killed
		state  string   // state of the run when the process was killed, "" if there is no run
		after  []string // runs of an idempotent job at the end
		redone []string // attempts that have done the work at the end
		once   string   // the run if the job is not idempotent
	}{
		{afterEnqueue, "", nil, "", []string{"job.1 completed"}, []string{"1"}, "job.1 completed"},
		{afterClaim, "", nil, "", []string{"job.1 interrupted", "job.2 completed"}, []string{"2"}, "job.1 interrupted"},
		{insideBegin, "", nil, "", []string{"job.1 interrupted", "job.2 completed"}, []string{"2"}, "job.1 interrupted"},
		{afterBegin, "", nil, "started", []string{"job.1 interrupted", "job.2 completed"}, []string{"2"}, "job.1 interrupted"},
		{whilePerform, "", []string{"1"}, "started", []string{"job.1 interrupted", "job.2 completed"}, []string{"1", "2"}, "job.1 interrupted"},
		{afterPerform, "", []string{"1"}, "started", []string{"job.1 interrupted", "job.2 completed"}, []string{"1", "2"}, "job.1 interrupted"},
		{insideSettle, "", []string{"1"}, "started", []string{"job.1 interrupted", "job.2 completed"}, []string{"1", "2"}, "job.1 interrupted"},
		{afterSettle, "", []string{"1"}, "completed", []string{"job.1 completed"}, []string{"1"}, "job.1 completed"},
		{whilePerform, insideRecover, []string{"1"}, "started", []string{"job.1 interrupted", "job.2 completed"}, []string{"1", "2"}, "job.1 interrupted"},
		{whilePerform, afterRecover, []string{"1"}, "started", []string{"job.1 interrupted", "job.2 completed"}, []string{"1", "2"}, "job.1 interrupted"},
	} {
		for _, name := range []string{"idempotent.db", "once.db"} {
			t.Run(strings.TrimSuffix(fmt.Sprintf("%s %s, %s", test.death, test.again, name), ".db"), func(t *testing.T) {
				t.Parallel()
				file := filepath.Join(t.TempDir(), name)
				content, err := template()
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, content, 0o600); err != nil {
					t.Fatal(err)
				}
				sacrifice(t, file, test.death)
				if test.again != "" {
					sacrifice(t, file, test.again)
				} else if got := marks(t, file); !slices.Equal(got, test.marks) {
					t.Fatalf("when it died the attempts %q had done the work, want %q", got, test.marks)
				}
				after, redone := test.after, test.redone
				if name == "once.db" {
					after = []string{test.once}
					if redone = test.marks; test.death == afterEnqueue {
						redone = test.redone
					}
				}
				resurrect(t, file, test.state, test.again, after, redone)
			})
		}
	}
}

// resurrect recovers the job and works as a new process would, and asserts the result.
func resurrect(t *testing.T, file, state string, again death, after, redone []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	db := reopen(t, file)
	if got := db.runs(t); again == "" && state != "" && !slices.Contains(got, "job.1 "+state) {
		t.Errorf("when it died the records were %q, want job.1 to be %s", got, state)
	}
	queue := newQueue(t, db, &riverjobs.Options{ID: "heir"})
	alive, err := queue.Recover(ctx, func(string) bool { return false })
	if err != nil || len(alive.Again)+len(alive.Over) > 0 {
		t.Errorf("Recover of a living process's work: %+v, %v", alive, err)
	}
	recovered, err := queue.Recover(ctx, func(id string) bool { return id == victimID })
	if err != nil {
		t.Fatal(err)
	}
	if again != afterRecover {
		wantRecovered(t, recovered, after)
	}
	worked := make(chan error, 1)
	go func() { // ends when ctx is cancelled
		worked <- queue.Work(ctx, func(_ context.Context, job hook.Job) (hook.Run, time.Time) {
			if err := leaveMark(file, job); err != nil {
				t.Error(err)
			}
			return ended(job, hook.Completed), time.Time{}
		})
	}()
	awaitIdle(t, queue)
	cancel()
	if err := <-worked; err != nil {
		t.Error(err)
	}
	if got, want := db.runs(t), append([]string{"asked backgrounded"}, after...); !slices.Equal(got, want) {
		t.Errorf("the records are %q, want %q", got, want)
	}
	if got := marks(t, file); !slices.Equal(got, redone) {
		t.Errorf("the attempts %q did the work, want %q", got, redone)
	}
	done := db.texts(t.Context(), "SELECT key || ' ' || done FROM keys")
	if want := []string{"key 1"}; strings.HasSuffix(after[len(after)-1], "completed") && !slices.Equal(done, want) {
		t.Errorf("the keys are %q, want %q", done, want)
	} else if strings.HasSuffix(after[len(after)-1], "interrupted") && len(done) > 0 {
		t.Errorf("the keys are %q, want the key to be free", done)
	}
}

// wantRecovered asserts the result of Recover for the only job.
func wantRecovered(t *testing.T, got riverjobs.Recovered, after []string) {
	t.Helper()
	var again, over int
	if after[0] == "job.1 interrupted" {
		again, over = len(after)-1, 2-len(after)
	}
	if len(got.Again) != again || len(got.Over) != over {
		t.Errorf("Recover did %+v, want %d due again and %d over", got, again, over)
	}
	for _, run := range slices.Concat(got.Again, got.Over) {
		if run.ID != "job.1" || run.State != hook.Interrupted || run.Started.IsZero() || run.Ended.Before(run.Started) {
			t.Errorf("Recover says the attempt was %+v", run)
		}
	}
}

// awaitIdle waits until no job waits or runs.
func awaitIdle(t *testing.T, queue jobs) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for range tick.C {
		if time.Since(began) > time.Minute {
			t.Error("there is work that does not end")
			return
		}
		stats, err := queue.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if stats.Waiting+stats.Running == 0 {
			return
		}
	}
}
