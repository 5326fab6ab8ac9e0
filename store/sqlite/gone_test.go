package sqlite_test

import (
	"context"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/sqlite"
)

// removeLocks removes the lock files, like a cleanup program.
func removeLocks(t testing.TB, s *sqlite.Store) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a file that is open cannot be removed on Windows")
	}
	files, err := s.LockFiles()
	if err != nil || len(files) == 0 {
		t.Fatalf("the lock files are %q, %v", files, err)
	}
	for _, name := range files {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// A living process does not count as dead if its lock file is removed. A process that has
// ended counts as dead, with or without the file.
//
// SPEC L-02, J-04
func TestLockFileRemoved(t *testing.T) {
	t.Parallel()
	ctx, file := t.Context(), newFile(t)
	s := openFile(t, file, nil)
	_, kill := another(t, "hold", file)
	epoch := hold(t, s, "mine").Epoch
	mine := run("mine", hook.Started)
	mine.Scope.Session = "mine"
	appendRuns(t, s, mine)
	removeLocks(t, s)

	next := openFile(t, file, nil)
	for _, session := range []string{"mine", "a", "b"} {
		_, err := next.Open(ctx, session)
		wantError(t, "Open of a session that is held", err, belay.ErrHeld)
	}
	if got := held(t, next); len(got) != 3 {
		t.Errorf("%q are held, want all three", got)
	}
	if got := next.Recovery(); got.Holders != 0 || len(got.Runs) != 0 {
		t.Errorf("while they live %+v is settled, want nothing", got)
	}
	wantStates(t, next, "mine started", "begun started", "ended completed")
	commit(t, s, say("mine", epoch, 1, "one"))

	kill()
	hold(t, next, "a")
	if got := next.Recovery(); got.Holders != 1 || !slices.Equal(got.Sessions, []string{"a", "b"}) {
		t.Errorf("when one is dead %+v is settled, want what it left", got)
	}
	closeStore(t, s)
	hold(t, next, "mine")
	wantStates(t, next, "mine interrupted", "begun interrupted", "ended completed")
}

// If another process has the same process id, the holder still counts as dead.
func TestProcessIDGivenAgain(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("when a process was started is looked up on Linux only")
	}
	file := newFile(t)
	s := openFile(t, file, nil)
	hold(t, s, "a")
	removeLocks(t, s)
	execute(t, file, "UPDATE holders SET process = process || '0'")
	next := openFile(t, file, nil)
	hold(t, next, "a")
	if got := next.Recovery(); got.Holders != 1 {
		t.Errorf("settled: %+v, want the holder", got)
	}
}

// A removed lock file does not make two workers run the same job.
//
// SPEC J-05
func TestNoTwoWorkers(t *testing.T) {
	t.Parallel()
	ctx, file := t.Context(), newFile(t)
	s := openFile(t, file, nil)
	jobs := []hook.Job{{ID: "x", Key: "x", Handler: "h", Idempotent: true}, {ID: "y", Key: "y", Handler: "h", Idempotent: true}}
	if err := s.Queue().Enqueue(ctx, run("asked", hook.Completed), jobs); err != nil {
		t.Fatal(err)
	}
	another(t, "work", file)
	removeLocks(t, s)
	next := openFile(t, file, &sqlite.Options{JobPoll: 5 * time.Millisecond, RecoverPoll: time.Millisecond})
	if err := next.Queue().Enqueue(ctx, run("asked-too", hook.Completed), []hook.Job{{ID: "z", Key: "z", Handler: "h", At: time.Now().Add(50 * time.Millisecond)}}); err != nil {
		t.Fatal(err)
	}
	if got := work(t, next, "z"); !slices.Equal(got, []string{"z"}) {
		t.Errorf("%q were performed, want nothing of what another is at", got)
	}
	wantStates(t, next, "asked completed", "asked-too completed", "x.1 started", "y.1 started", "z.1 completed")
}

// work runs jobs until the job named last has run, and returns the names of the jobs.
func work(t testing.TB, s *sqlite.Store, last string) (performed []string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	one := make(chan struct{}, 1) // one job at a time
	err := s.Queue().(hook.WorkQueue).Work(ctx, func(_ context.Context, job hook.Job) (hook.Run, time.Time) {
		one <- struct{}{}
		defer func() { <-one }()
		performed = append(performed, job.ID)
		if job.ID == last {
			stop()
		}
		ended := job.Begun(time.Now())
		ended.State, ended.Ended = hook.Completed, time.Now()
		return ended, time.Time{}
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(performed)
	return performed
}

// A worker cleans up after a worker that was killed later than the store was opened. It
// does so when it begins and while it works.
//
// SPEC J-04
func TestWorkersTakeOver(t *testing.T) {
	t.Parallel()
	for name, poll := range map[string]time.Duration{"when they begin": time.Hour, "while they work": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, file := t.Context(), newFile(t)
			s := openFile(t, file, &sqlite.Options{JobPoll: 5 * time.Millisecond, RecoverPoll: poll})
			retry := hook.Retry{Attempts: 3, Delay: time.Millisecond}
			jobs := []hook.Job{{ID: "x", Key: "x", Handler: "h", Idempotent: true, Retry: retry}, {ID: "y", Key: "y", Handler: "h", Idempotent: true, Retry: retry}}
			if err := s.Queue().Enqueue(ctx, run("asked", hook.Completed), jobs); err != nil {
				t.Fatal(err)
			}
			_, kill := another(t, "work", file)
			if poll == time.Hour {
				kill()
			} else {
				first := hook.Job{ID: "first", Key: "first", Handler: "kill"}
				if err := s.Queue().Enqueue(ctx, run("asked-too", hook.Completed), []hook.Job{first}); err != nil {
					t.Fatal(err)
				}
			}
			working, stop := context.WithTimeout(ctx, time.Minute)
			defer stop()
			done := make(chan string, 4)
			err := s.Queue().(hook.WorkQueue).Work(working, func(_ context.Context, job hook.Job) (hook.Run, time.Time) {
				if job.Handler == "kill" {
					kill()
				} else if done <- job.ID; len(done) == 2 {
					stop()
				}
				ended := job.Begun(time.Now())
				ended.State, ended.Ended = hook.Completed, time.Now()
				return ended, time.Time{}
			})
			if err != nil || len(done) != 2 {
				t.Fatalf("%d of 2 jobs are taken up, %v", len(done), err)
			}
			got := s.Recovery()
			if len(got.Due) != 2 {
				t.Errorf("settled: %+v, want the worker's two jobs", got)
			}
			// The cleanup makes jobs due before it removes the holder's entry. If the
			// cleanup is interrupted in between, the next process finishes it.
			if next := openFile(t, file, nil).Recovery(); got.Holders+next.Holders != 1 || len(next.Due) != 0 {
				t.Errorf("settled: %+v and then %+v, want the worker once", got, next)
			}
		})
	}
}

// A holder without an entry has closed its store. Cleaning up after it does not count as a
// crash.
func TestRecoveryCountsCrashes(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	hold(t, s, "a")
	if err := s.Expire(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	hold(t, s, "a")
	if got := s.Recovery(); got.Holders != 0 || !slices.Equal(got.Sessions, []string{"a"}) {
		t.Errorf("settled: %+v, want the session and no holder", got)
	}
}

// If a cleanup could not be stored, Recovery does not report it, and the next cleanup
// repeats it.
//
// SPEC J-04
func TestRecoveryThatFails(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]string{
		"at the end": `CREATE TABLE parent (id INTEGER PRIMARY KEY);
			CREATE TABLE child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED);
			CREATE TRIGGER trouble AFTER DELETE ON holders BEGIN INSERT INTO child VALUES (1); END`,
		// This is like a full disk: the transaction is rolled back, and later writes
		// succeed.
		"on the way": `CREATE TRIGGER trouble BEFORE UPDATE OF holder ON sessions WHEN new.holder = '' BEGIN SELECT RAISE(ROLLBACK, 'trouble'); END`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := newFile(t)
			s := openFile(t, file, nil)
			_, kill := another(t, "hold", file)
			kill()
			execute(t, file, trouble)
			if _, err := s.Open(t.Context(), "a"); err == nil {
				t.Fatal("the session is opened: the test proves nothing")
			}
			if got := s.Recovery(); got.Holders != 0 || len(got.Sessions)+len(got.Open)+len(got.Runs) != 0 {
				t.Errorf("settled: %+v, want nothing", got)
			}
			var holders int
			if err := s.QueryRow(t.Context(), "SELECT count(*) FROM holders", &holders); err != nil || holders != 2 {
				t.Errorf("%d holders are on the list, %v, want both", holders, err)
			}
			execute(t, file, "DROP TRIGGER trouble")
			hold(t, s, "a")
			if got := s.Recovery(); got.Holders != 1 || len(got.Sessions) != 2 || len(got.Runs) != 1 {
				t.Errorf("settled: %+v, want what was left", got)
			}
		})
	}
}

// If the cleanup of one dead process fails, other dead processes are still cleaned up.
//
// SPEC J-04
func TestAJobThatCannotBeSettled(t *testing.T) {
	t.Parallel()
	ctx, file := t.Context(), newFile(t)
	s := openFile(t, file, nil)
	commit(t, s, say("a", hold(t, s, "a").Epoch, 1, "one"))
	if err := s.Queue().Enqueue(ctx, run("asked", hook.Completed), []hook.Job{{ID: "bad", Key: "k", Handler: "h"}}); err != nil {
		t.Fatal(err)
	}
	execute(t, file, `INSERT INTO holders (id, pid, host, since) VALUES ('ghost', 1, 'elsewhere', 1);
		UPDATE sessions SET holder = 'ghost' WHERE id = 'a';
		UPDATE river_job SET state = 'running', attempt = 1, attempted_at = CURRENT_TIMESTAMP, attempted_by = jsonb('["ghost"]');
		CREATE TRIGGER refuse BEFORE INSERT ON runs WHEN NEW.job = 'bad' BEGIN SELECT RAISE(ABORT, 'not this one'); END`)
	_, err := sqlite.Open(ctx, file, nil)
	if err == nil || !strings.Contains(err.Error(), "not this one") {
		t.Errorf("Open gives %v, want what cannot be settled", err)
	}
	left := ""
	if err := s.QueryRow(ctx, "SELECT holder FROM sessions WHERE id = 'a'", &left); err != nil || left != "" {
		t.Errorf("the session is held by %q, %v, want that it is settled", left, err)
	}
	commit(t, s, say("a", hold(t, s, "a").Epoch, 2, "two"))
}
