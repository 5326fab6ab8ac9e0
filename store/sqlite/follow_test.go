package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/sqlite"
)

// follow follows a journal in a goroutine that ends with the test. It returns when the
// goroutine has seen a first run. The channel gets the later runs in the form "id state".
func follow(t testing.TB, s *sqlite.Store, filter hook.Filter) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	seen, ended := make(chan string, 1000), make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	go func() {
		defer close(ended)
		for r, err := range s.Journal().(hook.FollowJournal).Follow(ctx, filter) {
			if err != nil {
				seen <- err.Error()
				return
			}
			seen <- fmt.Sprint(r.ID, " ", r.State)
		}
	}()
	for i := 0; ; i++ { // append runs until the follower sees one
		if i == 1000 {
			t.Fatal("nothing is seen, want what is stored")
		}
		appendRuns(t, s, run(fmt.Sprint("begin-", i), hook.Completed))
		select {
		case got := <-seen:
			for got != fmt.Sprintf("begin-%d completed", i) { // skip earlier runs
				got = <-seen
			}
			return seen
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Follow yields every change of a run of this process, at once and in order.
//
// SPEC J-08
func TestFollow(t *testing.T) {
	t.Parallel()
	s := open(t, &sqlite.Options{Poll: time.Hour}) // without a wake-up the test would wait for an hour
	epoch := hold(t, s, "a").Epoch
	seen := follow(t, s, hook.Filter{Phase: "tool.pre"})
	other := run("other", hook.Completed)
	other.Phase = "tool.post"
	appendRuns(t, s, run("one", hook.Started), other)
	wantSeen(t, seen, "one started")
	commit(t, s, &belay.Commit{Session: "a", Epoch: epoch, Runs: []hook.Run{run("two", hook.Completed)}})
	wantSeen(t, seen, "two completed")
	appendRuns(t, s, run("one", hook.Failed))
	wantSeen(t, seen, "one failed")
	appendRuns(t, s, run("one", hook.Started)) // this write is too late and changes nothing
	appendRuns(t, s, run("three", hook.Completed), run("four", hook.Skipped))
	wantSeen(t, seen, "three completed")
	wantSeen(t, seen, "four skipped")
	if err := s.Queue().Enqueue(t.Context(), run("five", hook.Backgrounded), nil); err != nil {
		t.Fatal(err)
	}
	wantSeen(t, seen, "five backgrounded")
}

// Follow finds runs of another process by polling.
//
// SPEC J-08
func TestFollowAnother(t *testing.T) {
	t.Parallel()
	file := newFile(t)
	s, other := openFile(t, file, &sqlite.Options{Poll: time.Millisecond}), openFile(t, file, nil)
	seen := follow(t, s, hook.Filter{})
	appendRuns(t, other, run("one", hook.Started))
	wantSeen(t, seen, "one started")
	closeStore(t, other) // Close ends the runs that the store started
	wantSeen(t, seen, "one interrupted")
}

func wantSeen(t testing.TB, seen <-chan string, want string) {
	t.Helper()
	select {
	case got := <-seen:
		if got != want {
			t.Errorf("%q is seen, want %q", got, want)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("nothing is seen, want %q", want)
	}
}

// A follower that stops, or whose context ends, leaves no goroutine. TestMain checks for
// leaked goroutines.
func TestFollowIsLeft(t *testing.T) {
	t.Parallel()
	s := open(t, &sqlite.Options{Poll: time.Hour})
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Millisecond, func() { cancel(why) })
	var last error
	for _, err := range s.Journal().(hook.FollowJournal).Follow(ctx, hook.Filter{}) {
		last = err
	}
	if !errors.Is(last, why) {
		t.Errorf("following ended with %v, want the cause", last)
	}
}

// If the store is closed while a follower handles a run, the follower's next result is the
// error.
func TestFollowIsClosed(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	appending, stop := context.WithCancel(t.Context())
	var appended sync.WaitGroup
	appended.Go(func() { // appends runs until the follower has seen one
		for i := 0; appending.Err() == nil; i++ {
			appendRuns(t, s, run(fmt.Sprint("run-", i), hook.Completed))
		}
	})
	var last error
	for _, err := range s.Journal().(hook.FollowJournal).Follow(t.Context(), hook.Filter{}) {
		if last = err; err == nil {
			stop()
			appended.Wait()
			closeStore(t, s)
		}
	}
	stop()
	wantError(t, "following a store that was closed", last, belay.ErrClosed, s.Path())
}

// A listing yields each run exactly once, even if a run is replaced during the listing by
// one with another start time.
//
// SPEC J-08
func TestListWhileRunsMove(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const many = 600 // more than two pages
	runs, want := make([]hook.Run, many), make([]string, many)
	for i := range runs {
		runs[i] = run(fmt.Sprintf("run-%03d", i), hook.Started)
		runs[i].Started, want[i] = at.Add(time.Duration(i)*time.Second), runs[i].ID
	}
	appendRuns(t, s, runs...)
	var got []string
	for r, err := range s.Journal().(hook.ListJournal).List(t.Context(), hook.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, r.ID); len(got) == 200 {
			for from, to := range map[int]int{10: 500, 400: 2} {
				moved := runs[from]
				moved.State, moved.Started = hook.Interrupted, runs[to].Started
				appendRuns(t, s, moved)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d runs are listed, want %d, each once and in its place", len(got), many)
	}
}

// A listing contains the runs that were stored when it began. It does not contain later
// runs, even on pages that are read later.
func TestListIsOfOneMoment(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	batch := func(name string, n int) (runs []hook.Run) {
		for i := range n {
			r := run(fmt.Sprintf("%s-%03d", name, i), hook.Completed)
			r.Started = at.Add(time.Duration(i) * time.Second)
			runs = append(runs, r)
		}
		return runs
	}
	appendRuns(t, s, batch("first", 700)...)
	for _, newest := range []bool{false, true} {
		var got []string
		for r, err := range s.Journal().(hook.ListJournal).List(t.Context(), hook.Filter{Newest: newest}) {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, r.ID); len(got) == 5 && !newest {
				appendRuns(t, s, batch("second", 700)...)
			}
			if len(r.ID) > 6 && r.ID[:6] == "second" && !newest {
				t.Fatalf("%s was stored after the listing began", r.ID)
			}
		}
		want := 700
		if newest {
			want = 1400
		}
		if len(got) != want || !newest && !slices.IsSorted(got) {
			t.Errorf("newest %t: %d runs are listed, want %d in order", newest, len(got), want)
		}
	}
}

// Every listing uses an index. Except for subscriptions, the index has the requested order.
//
// SPEC J-08
func TestListingsUseIndexes(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	for want, filter := range map[string]hook.Filter{
		"runs_started": {},
		"runs_session": {Session: "a"},
		"runs_block":   {Subscription: "a"},
		"runs_phase":   {Phase: "a"},
		"runs_state":   {States: []hook.State{hook.Failed}},
		"runs_job":     {Job: "a"},
	} {
		for _, newest := range []bool{false, true} {
			for _, places := range []bool{false, true} {
				filter.Newest = newest
				limited := filter
				limited.Limit = 50
				plan, err := s.QueryPlan(t.Context(), limited, places)
				if err != nil {
					t.Fatal(err)
				}
				for _, line := range plan {
					if want != "runs_block" && (strings.HasPrefix(line, "USE TEMP B-TREE") || strings.HasPrefix(line, "SCAN runs") && !strings.Contains(line, want)) {
						t.Errorf("%+v, places %t, is read by %q, want %s alone, without sorting", limited, places, plan, want)
					}
				}
				plan, err = s.QueryPlan(t.Context(), filter, places)
				if err != nil {
					t.Fatal(err)
				}
				if want == "runs_block" {
					for _, line := range []string{"COVERING INDEX runs_block (<expr>=? AND subscription=?)", "COVERING INDEX runs_hooks (hooks=?)"} {
						if !slices.Contains(plan, "SEARCH runs USING "+line) {
							t.Errorf("%+v, places %t, is read by %q, want %s", filter, places, plan, line)
						}
					}
					continue
				}
				if len(plan) != 1 || !strings.Contains(plan[0], want) {
					t.Errorf("%+v, places %t, is read by %q, want %s alone, without sorting", filter, places, plan, want)
				}
			}
		}
	}
	plan, err := s.FollowPlan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(plan, func(line string) bool { return strings.Contains(line, "runs_replaced") }) ||
		!slices.ContainsFunc(plan, func(line string) bool { return strings.Contains(line, "PRIMARY") }) {
		t.Errorf("following reads by %q, want the primary key and runs_replaced", plan)
	}
}
