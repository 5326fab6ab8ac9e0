package sqlite_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/store/sqlite"
)

// Prune keeps a session while one of its jobs waits or runs, or one of its hooks runs.
// Afterwards Prune removes the session.
//
// SPEC J-04
func TestPruneWaitsForWork(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	clock := hooktest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	s := open(t, &sqlite.Options{Clock: clock, JobPoll: 5 * time.Millisecond})
	all := []string{"idle", "job-by-commit", "job-enqueued", "job-later", "job-with-input", "run-started"}
	for _, session := range all {
		fill(t, s, session, nil)
	}
	job := func(session string) hook.Job {
		return hook.Job{ID: session, Key: "key:" + session, Handler: "h", Run: "asked", Scope: hook.Scope{Session: session}}
	}
	epoch := hold(t, s, "job-by-commit").Epoch
	c := say("job-by-commit", epoch, 2, "and a job")
	c.Jobs = []hook.Job{job("job-by-commit")}
	commit(t, s, c)
	c.Jobs[0].Scope.Session = "another" // the caller may change the commit after Commit has returned
	if err := s.Release(ctx, "job-by-commit", epoch); err != nil {
		t.Fatal(err)
	}
	later := job("job-later")
	later.At = time.Now().Add(1000 * time.Hour)
	if err := s.Queue().Enqueue(ctx, run("asked", hook.Completed), []hook.Job{job("job-enqueued"), later}); err != nil {
		t.Fatal(err)
	}
	if err := s.Queue().(hook.InputQueue).EnqueueInput(ctx, run("asked-too", hook.Backgrounded), job("job-with-input"), json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	begun := run("begun", hook.Started)
	begun.Scope.Session = "run-started"
	appendRuns(t, s, begun)

	clock.Advance(time.Hour)
	prune := func(when string, want ...string) {
		t.Helper()
		did, err := s.Prune(ctx, sqlite.Retention{Age: time.Minute, MaxBytes: 1})
		slices.Sort(did.Sessions)
		if err != nil || !slices.Equal(did.Sessions, want) {
			t.Errorf("%s %q are removed, %v, want %q", when, did.Sessions, err, want)
		}
	}
	prune("while they wait", "idle")
	working, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	performed := 0
	one := make(chan struct{}, 1) // one job at a time
	err := s.Queue().(hook.WorkQueue).Work(working, func(_ context.Context, job hook.Job) (hook.Run, time.Time) {
		one <- struct{}{}
		defer func() { <-one }()
		if performed++; performed == 1 {
			prune("while they run")
		}
		if performed == 3 {
			stop()
		}
		ended := job.Begun(clock.Now())
		ended.State, ended.Ended = hook.Completed, clock.Now()
		return ended, time.Time{}
	})
	if err != nil {
		t.Fatal(err)
	}
	begun.State = hook.Failed
	appendRuns(t, s, begun)
	prune("afterwards", "job-by-commit", "job-enqueued", "job-with-input", "run-started")
	if got := sessions(t, s); !slices.Equal(got, []string{"job-later"}) {
		t.Errorf("%q are left, want the one whose job is to come", got)
	}
}

// Runs without a session count for MaxBytes, and Prune removes them first.
func TestPruneRecordsBySize(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	fill(t, s, "a", nil)
	bound, err := s.Prune(t.Context(), sqlite.Retention{})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	runs := make([]hook.Run, 3000)
	for i := range runs {
		runs[i] = run(fmt.Sprintf("run-%04d", i), hook.Completed)
		runs[i].Scope.Session, runs[i].Started = "", at.Add(time.Duration(i)*time.Second)
	}
	runs[0].State = hook.Started
	appendRuns(t, s, runs...)
	const room = 700_000
	did, err := s.Prune(t.Context(), sqlite.Retention{MaxBytes: bound.After + room})
	if err != nil || len(did.Sessions) != 0 || did.Runs == 0 || did.Runs >= 2999 || did.After > bound.After+room {
		t.Errorf("%+v is removed, %v, want as many records as it takes to come from %d to %d bytes", did, err, did.Before, bound.After+room)
	}
	if got := states(t, s, hook.Filter{Newest: true, Limit: 1, Until: at.Add(time.Hour)}); !slices.Equal(got, []string{"run-2999 completed"}) {
		t.Errorf("the newest record is %q, want it to be left", got)
	}
	did, err = s.Prune(t.Context(), sqlite.Retention{MaxBytes: 1})
	if err != nil || !slices.Equal(did.Sessions, []string{"a"}) {
		t.Errorf("down to nothing %+v is removed, %v, want the session", did, err)
	}
	wantStates(t, s, "run-0000 started")
}

// The files no longer contain the text of a removed session, or the input of a job that has
// ended.
func TestPrunedTextIsGone(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, &sqlite.Options{JobPoll: 5 * time.Millisecond})
	for _, session := range []string{"old", "new"} {
		epoch := hold(t, s, session).Epoch
		commit(t, s, say(session, epoch, 1, "short, planted in "+session))
		commit(t, s, say(session, epoch, 2, strings.Repeat("long, planted in "+session+" ", 2000)))
		if err := s.Release(ctx, session, epoch); err != nil {
			t.Fatal(err)
		}
	}
	for _, size := range []int{1, 2000} {
		job := hook.Job{ID: fmt.Sprint("job-", size), Key: fmt.Sprint("key-", size), Handler: "h"}
		input, err := json.Marshal(strings.Repeat("planted as input ", size))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Queue().(hook.InputQueue).EnqueueInput(ctx, run("asked-"+job.ID, hook.Backgrounded), job, input); err != nil {
			t.Fatal(err)
		}
	}
	wantInFiles(t, s, "planted as input", true)
	working, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	over := make(chan struct{}, 1)
	err := s.Queue().(hook.WorkQueue).Work(working, func(_ context.Context, job hook.Job) (hook.Run, time.Time) {
		select {
		case over <- struct{}{}:
		default:
			stop()
		}
		ended := job.Begun(time.Now())
		ended.State, ended.Ended = hook.Completed, time.Now()
		return ended, time.Time{}
	})
	if err != nil {
		t.Fatal(err)
	}
	if did, err := s.Prune(ctx, sqlite.Retention{MaxBytes: 1, Keep: 1}); err != nil || !slices.Equal(did.Sessions, []string{"old"}) {
		t.Fatalf("%+v is removed, %v, want the old one", did, err)
	}
	for _, gone := range []string{"short, planted in old", "long, planted in old", "planted as input"} {
		wantInFiles(t, s, gone, false)
	}
	wantInFiles(t, s, "short, planted in new", true)
}

// wantInFiles asserts whether a store's files contain a text.
func wantInFiles(t testing.TB, s *sqlite.Store, text string, want bool) {
	t.Helper()
	found := false
	for _, name := range []string{s.Path(), s.Path() + "-wal"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found = found || bytes.Contains(data, []byte(text))
	}
	if found != want {
		t.Errorf("%q is in the files: %t, want %t", text, found, want)
	}
}

// Prune also works on a file that cannot shrink, such as one that was dumped and loaded
// again.
func TestPruneAFileThatCannotShrink(t *testing.T) {
	t.Parallel()
	file := newFile(t)
	execute(t, file, "PRAGMA auto_vacuum = 0; VACUUM")
	s := openFile(t, file, nil)
	var kind int
	if err := s.QueryRow(t.Context(), "PRAGMA auto_vacuum", &kind); err != nil || kind != 0 {
		t.Fatalf("auto_vacuum is %d, %v: the test proves nothing", kind, err)
	}
	epoch := hold(t, s, "a").Epoch
	commit(t, s, say("a", epoch, 1, strings.Repeat("planted ", 20_000)))
	if err := s.Release(t.Context(), "a", epoch); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	did, err := s.Prune(ctx, sqlite.Retention{MaxBytes: 1})
	if err != nil || !slices.Equal(did.Sessions, []string{"a"}) || did.After >= did.Before-100_000 {
		t.Errorf("%+v is removed, %v, want the session", did, err)
	}
	wantInFiles(t, s, "planted", false)
}

// Only the owner can read a backup. A failed backup leaves no file.
func TestBackupMode(t *testing.T) {
	t.Parallel()
	s, dir := open(t, nil), t.TempDir()
	copied := filepath.Join(dir, "copy.db")
	if err := s.Backup(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(copied); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the copy has mode %v, %v, want it to be its owner's alone", info.Mode(), err)
	}
	wantError(t, "a backup into a file that is there", s.Backup(t.Context(), copied), fs.ErrExist, copied)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, "a backup that is cancelled", s.Backup(ended, filepath.Join(dir, "other.db")), context.Canceled)
	if names, err := filepath.Glob(dir + "/*"); err != nil || !slices.Equal(names, []string{copied}) {
		t.Errorf("%q are there, %v, want the copy alone", names, err)
	}
}

// The store rejects a call whose input is not JSON, because Export could not write it.
func TestCallInputIsJSON(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	epoch := hold(t, s, "a").Epoch
	c := say("a", epoch, 1, "one")
	c.Calls = []belay.CallRecord{{Message: 1, ID: "call", Tool: "read", State: "started", Input: json.RawMessage(`{"a`)}}
	if err := s.Commit(t.Context(), c); err == nil || !strings.Contains(err.Error(), `call "call": the input of the call is not JSON`) {
		t.Errorf("the commit gives %v, want to be told about the input", err)
	}
	if got := texts(t, s, "a"); len(got) != 0 {
		t.Errorf("%q is stored, want nothing", got)
	}
}
