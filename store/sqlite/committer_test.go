package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/sqlite"
)

// Commits that wait at the same time share a transaction.
func TestGroupCommit(t *testing.T) {
	t.Parallel()
	const sessions, rounds = 32, 8
	s := open(t, nil)
	epochs := make([]int64, sessions)
	for i := range epochs {
		epochs[i] = hold(t, s, fmt.Sprint("s", i)).Epoch
	}
	before := s.Stats()
	for n := range int64(rounds) {
		release := s.Block() // now all commits must wait
		var all sync.WaitGroup
		for i, epoch := range epochs {
			all.Go(func() {
				if err := s.Commit(context.Background(), say(fmt.Sprint("s", i), epoch, n+1, "text")); err != nil {
					t.Error(err)
				}
			})
		}
		awaitWaiting(s, sessions)
		release()
		all.Wait()
	}
	after := s.Stats()
	commits, transactions := after.Commits-before.Commits, after.Transactions-before.Transactions
	if commits != sessions*rounds || transactions > commits/4 {
		t.Errorf("%d commits took %d transactions, want %d in a quarter of that at most", commits, transactions, sessions*rounds)
	}
	for i := range epochs {
		if got := texts(t, s, fmt.Sprint("s", i)); len(got) != rounds {
			t.Errorf("session %d has %d messages, want %d", i, len(got), rounds)
		}
	}
}

// awaitWaiting returns when n writes are queued.
func awaitWaiting(s *sqlite.Store, n int) {
	for s.Waiting() < n {
		runtime.Gosched()
	}
}

// Commits that share a transaction succeed or fail separately.
//
// SPEC L-01
func TestRefusalsDoNotSpread(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), open(t, &sqlite.Options{MaxJobs: 2})
	a, b := hold(t, s, "a").Epoch, hold(t, s, "b").Epoch
	appendRuns(t, s, run("ended", hook.Completed))
	jobs := func(names ...string) (list []hook.Job) {
		for _, name := range names {
			list = append(list, hook.Job{ID: name, Key: name, Handler: "h"})
		}
		return list
	}
	full := say("b", b, 1, "too many jobs")
	full.Jobs = jobs("1", "2", "3")
	settled := say("b", b, 1, "settled otherwise")
	settled.Runs = []hook.Run{run("fresh", hook.Completed), run("ended", hook.Failed)}
	for _, test := range []struct {
		name   string
		commit *belay.Commit
		want   error
	}{
		{"fenced", say("b", b+100, 1, "fenced"), belay.ErrFenced},
		{"conflict", say("b", b, 7, "gap"), belay.ErrConflict},
		{"queue full", full, hook.ErrQueueFull},
		{"settled", settled, hook.ErrSettled},
	} {
		last := int64(len(texts(t, s, "a")))
		good, after := say("a", a, last+1, "before "+test.name), say("a", a, last+2, "after "+test.name)
		good.Runs = []hook.Run{run("good-"+test.name, hook.Completed)}
		before := s.Stats().Transactions
		told := s.CommitTogether(ctx, good, test.commit, after)
		if told[0] != nil || told[2] != nil || !errors.Is(told[1], test.want) {
			t.Errorf("%s: told %v, want only the one in the middle refused, with %v", test.name, told, test.want)
		}
		if got := s.Stats().Transactions - before; got != 1 {
			t.Errorf("%s: it took %d transactions, want 1", test.name, got)
		}
		if got := texts(t, s, "b"); len(got) != 0 {
			t.Errorf("%s: %q is stored of what was refused", test.name, got)
		}
	}
	if got := texts(t, s, "a"); len(got) != 8 {
		t.Errorf("%q is stored, want all that was not refused", got)
	}
	if got := states(t, s, hook.Filter{}); len(got) != 5 || slices.Contains(got, "fresh completed") {
		t.Errorf("the runs are %q, want none of what was refused", got)
	}
}

// If a write panics, only that write fails.
func TestPanicInAWrite(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	a := hold(t, s, "a").Epoch
	told := s.Batch(
		func(context.Context) error { panic("in the middle") },
		func(context.Context) error { return nil },
	)
	if told[0] == nil || !strings.Contains(told[0].Error(), "in the middle") || told[1] != nil {
		t.Errorf("told %v, want the panic for the first and nothing for the second", told)
	}
	commit(t, s, say("a", a, 1, "it goes on"))
}

// If the context of a queued commit ends, the commit is not stored.
func TestCancelledInLine(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	a, b := hold(t, s, "a").Epoch, hold(t, s, "b").Epoch
	release := s.Block()
	first := make(chan error, 1)
	go func() { first <- s.Commit(context.Background(), say("a", a, 1, "stays")) }() // ends when Commit returns
	awaitWaiting(s, 1)
	why := errors.New("the user left")
	ctx, cancel := context.WithCancelCause(context.Background())
	second := make(chan error, 1)
	go func() { second <- s.Commit(ctx, say("b", b, 1, "withdrawn")) }() // ends when Commit returns
	awaitWaiting(s, 2)
	cancel(why)
	if err := <-second; !errors.Is(err, why) {
		t.Errorf("the one in line was told %v, want the cause", err)
	}
	release()
	if err := <-first; err != nil {
		t.Errorf("the other one was told %v", err)
	}
	if got := texts(t, s, "b"); len(got) != 0 {
		t.Errorf("%q is stored of what was withdrawn", got)
	}
	commit(t, s, say("b", b, 1, "again"))
}

// Close writes queued commits, releases sessions, ends runs and removes the lock file.
// Later calls fail.
func TestClose(t *testing.T) {
	t.Parallel()
	ctx, file := context.Background(), newFile(t)
	s := openFile(t, file, nil)
	stored := hold(t, s, "a")
	commit(t, s, say("a", stored.Epoch, 1, "one"))
	appendRuns(t, s, run("begun", hook.Started))
	following := make(chan error, 1)
	go func() { // ends when the store is closed
		var last error
		for _, err := range s.Journal().(hook.FollowJournal).Follow(ctx, hook.Filter{}) {
			last = err
		}
		following <- last
	}()
	working := make(chan error, 1)
	begun := make(chan struct{})
	go func() { // ends when the store is closed
		working <- s.Queue().(hook.WorkQueue).Work(ctx, func(_ context.Context, job hook.Job) (hook.Run, time.Time) {
			close(begun)
			ended := job.Begun(time.Now())
			ended.State, ended.Ended = hook.Completed, time.Now()
			return ended, time.Time{}
		})
	}()
	commit(t, s, &belay.Commit{Session: "a", Epoch: stored.Epoch, Jobs: []hook.Job{{ID: "job", Key: "job", Handler: "h"}}})
	<-begun
	closeStore(t, s)
	closeStore(t, s) // closing twice is harmless
	if err := <-following; err == nil {
		t.Error("the follower got no notice")
	}
	if err := <-working; err != nil {
		t.Errorf("the writer got %v", err)
	}
	wantLocks(t, s, 0)
	wantError(t, "Commit", s.Commit(ctx, say("a", stored.Epoch, 2, "two")), belay.ErrClosed, file)
	_, err := s.Open(ctx, "a")
	wantError(t, "Open", err, belay.ErrClosed)
	wantError(t, "Append", s.Journal().Append(ctx, []hook.Run{run("late", hook.Completed)}), belay.ErrClosed)
	wantError(t, "Work", s.Queue().(hook.WorkQueue).Work(ctx, nil), belay.ErrClosed)

	next := openFile(t, file, nil)
	if again := hold(t, next, "a"); again.Last != 1 || again.Epoch <= stored.Epoch {
		t.Errorf("opened again: last message %d, epoch %d, want 1 and more than %d", again.Last, again.Epoch, stored.Epoch)
	}
	wantStates(t, next, "begun interrupted", "job.1 completed")
	if got := next.Recovery(); got.Holders != 0 {
		t.Errorf("%+v is settled, want nothing left to settle", got)
	}
}

// Two stores of one process are two holders, even if they use different paths of the same
// file.
func TestTwoStoresOneFile(t *testing.T) {
	t.Parallel()
	file := newFile(t)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(file, link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	one, two := openFile(t, file, nil), openFile(t, link, nil)
	stored := hold(t, one, "a")
	_, err := two.Open(t.Context(), "a")
	wantError(t, "Open by the other", err, belay.ErrHeld, "process")
	commit(t, one, say("a", stored.Epoch, 1, "one"))
	if got := texts(t, two, "a"); !slices.Equal(got, []string{"one"}) {
		t.Errorf("the other reads %q, want what was committed", got)
	}
	if err := one.Release(t.Context(), "a", stored.Epoch); err != nil {
		t.Fatal(err)
	}
	if again := hold(t, two, "a"); again.Epoch <= stored.Epoch {
		t.Errorf("the other's epoch is %d after %d", again.Epoch, stored.Epoch)
	}
	wantError(t, "a commit of the former holder", one.Commit(t.Context(), say("a", stored.Epoch, 2, "two")), belay.ErrFenced)
}

// Many processes can open a new file at the same time. The tables are created only once.
func TestOpenedByManyAtOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "belay.db")
	errs := make(chan error)
	for range 4 {
		go func() { // ends after it has closed its store
			s, err := sqlite.Open(context.Background(), file, &sqlite.Options{BusyTimeout: time.Minute})
			if err == nil {
				err = s.Close()
			}
			errs <- err
		}()
	}
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
