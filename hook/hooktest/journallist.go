package hooktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// listRules describe which runs List selects, and in which order.
//
// The oldest run is the one that started first. If several runs started at the same time,
// the oldest is the one that was appended first. The rules append runs in order of their
// start, so a journal that lists runs in the order of arrival passes too.
var listRules = []rule[hook.Journal]{
	{"an empty journal lists nothing", func(t testing.TB, j hook.Journal) { wantListed(t, j, hook.Filter{}) }},
	{"a filter selects by session", func(t testing.TB, j hook.Journal) {
		appendVaried(t, j)
		wantListed(t, j, hook.Filter{Session: "s2"}, "e", "f")
	}},
	{"a filter selects by turn", func(t testing.TB, j hook.Journal) {
		appendVaried(t, j)
		wantListed(t, j, hook.Filter{Turn: "t2"}, "c", "d", "f")
	}},
	{"a filter selects by phase", func(t testing.TB, j hook.Journal) {
		appendVaried(t, j)
		wantListed(t, j, hook.Filter{Phase: "p2"}, "b", "d")
	}},
	{"a filter selects by subscription", func(t testing.TB, j hook.Journal) {
		appendVaried(t, j)
		wantListed(t, j, hook.Filter{Subscription: "u2"}, "a", "f")
	}},
	{"a filter selects by job", func(t testing.TB, j hook.Journal) {
		appendVaried(t, j)
		wantListed(t, j, hook.Filter{Job: "j1"}, "d", "e")
	}},
	{"a filter selects by any of several states", func(t testing.TB, j hook.Journal) {
		appendVaried(t, j)
		wantListed(t, j, hook.Filter{States: []hook.State{hook.Failed}}, "c")
		wantListed(t, j, hook.Filter{States: []hook.State{hook.Started, hook.Failed, hook.Interrupted}}, "b", "c")
		wantListed(t, j, hook.Filter{States: []hook.State{hook.Skipped}})
	}},
	{"a filter selects by time of start, Until exclusive", func(t testing.TB, j hook.Journal) {
		appendVaried(t, j)
		at := func(n int) time.Time { return epoch.Add(time.Duration(n) * time.Second) }
		wantListed(t, j, hook.Filter{Since: at(3)}, "d", "e", "f")
		wantListed(t, j, hook.Filter{Until: at(3)}, "a", "b", "c")
		wantListed(t, j, hook.Filter{Since: at(1), Until: at(3)}, "b", "c")
		wantListed(t, j, hook.Filter{Since: at(1).In(time.FixedZone("east", 9*3600)), Until: at(2)}, "b")
		wantListed(t, j, hook.Filter{Since: at(99)})
	}},
	{"every field of a filter must match", func(t testing.TB, j hook.Journal) {
		appendVaried(t, j)
		wantListed(t, j, hook.Filter{Session: "s1", Turn: "t2", Phase: "p2", Subscription: "u1", Job: "j1", States: []hook.State{hook.Completed}, Since: epoch}, "d")
		wantListed(t, j, hook.Filter{Session: "s2", Phase: "p2"})
		wantListed(t, j, hook.Filter{Session: "S1"})
		wantListed(t, j, hook.Filter{Session: "s%"})
		wantListed(t, j, hook.Filter{Session: "s_"})
	}},
	{"a limit counts only matches", func(t testing.TB, j hook.Journal) {
		appendVaried(t, j)
		wantListed(t, j, hook.Filter{Limit: 2}, "a", "b")
		wantListed(t, j, hook.Filter{Turn: "t2", Limit: 2}, "c", "d")
		wantListed(t, j, hook.Filter{Limit: 99}, "a", "b", "c", "d", "e", "f")
		wantListed(t, j, hook.Filter{Limit: 0}, "a", "b", "c", "d", "e", "f")
	}},
	{"the newest comes first if the filter says so, and a limit counts from there", func(t testing.TB, j hook.Journal) {
		appendVaried(t, j)
		wantListed(t, j, hook.Filter{Newest: true}, "f", "e", "d", "c", "b", "a")
		wantListed(t, j, hook.Filter{Newest: true, Limit: 2}, "f", "e")
		wantListed(t, j, hook.Filter{Newest: true, Turn: "t2", Limit: 1}, "f")
		appendRuns(t, j, sampleRun("y", hook.Completed, 9), sampleRun("x", hook.Completed, 9))
		wantListed(t, j, hook.Filter{Newest: true, Limit: 3}, "x", "y", "f")
	}},
	{"the oldest comes first", func(t testing.TB, j hook.Journal) {
		var want []string
		for i := range 120 { // more than ten, so that sorting the ids as text gives a wrong order
			id := fmt.Sprintf("run-%d", (i*37)%120)
			appendRuns(t, j, sampleRun(id, hook.Completed, i))
			want = append(want, id)
		}
		wantListed(t, j, hook.Filter{}, want...)
	}},
	{"runs with the same start keep the order in which they were appended", func(t testing.TB, j hook.Journal) {
		appendRuns(t, j, sampleRun("z", hook.Completed, 1), sampleRun("m", hook.Completed, 1))
		appendRuns(t, j, sampleRun("a", hook.Completed, 1))
		wantListed(t, j, hook.Filter{}, "z", "m", "a")
	}},
	{"a run keeps its place when it ends", func(t testing.TB, j hook.Journal) {
		appendRuns(t, j, sampleRun("one", hook.Started, 1), sampleRun("two", hook.Completed, 2))
		appendRuns(t, j, sampleRun("one", hook.Completed, 1))
		wantListed(t, j, hook.Filter{}, "one", "two")
	}},
	{"a listing can be abandoned and started again", func(t testing.TB, j hook.Journal) {
		appendVaried(t, j)
		for range 50 { // a listing that does not return its connection uses up the pool
			for _, err := range lister(t, j).List(context.Background(), hook.Filter{}) {
				if err != nil {
					t.Fatalf("List: %v", err)
				}
				break
			}
		}
		appendRuns(t, j, sampleRun("g", hook.Completed, 9))
		listing := lister(t, j).List(context.Background(), hook.Filter{Session: "s2"})
		for range 2 {
			n := 0
			for range listing {
				n++
			}
			if n != 2 {
				t.Errorf("ranging over one listing again gives %d runs, want 2", n)
			}
		}
	}},
	{"a cancelled listing ends with an error", func(t testing.TB, j hook.Journal) {
		appendVaried(t, j)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		var last error
		for _, err := range lister(t, j).List(ctx, hook.Filter{}) {
			last = err
		}
		if last == nil {
			t.Error("the listing ended without an error, as if it were complete")
		}
	}},
}

// parallelJournalRules check that many goroutines can use a journal at once.
var parallelJournalRules = []rule[hook.Journal]{
	{"concurrent appends lose nothing", func(t testing.TB, j hook.Journal) {
		const writers, batches, size = 8, 10, 5
		inParallel(t, writers, func(w int) error {
			for b := range batches {
				if err := j.Append(context.Background(), sampleBatch(w*batches+b, size)); err != nil {
					return err
				}
			}
			return nil
		})
		seen := make(map[string]bool)
		for _, run := range listRuns(t, j, hook.Filter{}) {
			seen[run.ID] = true
		}
		if got := len(listRuns(t, j, hook.Filter{})); got != writers*batches*size || len(seen) != got {
			t.Errorf("the journal holds %d runs with %d ids, want %d of each", got, len(seen), writers*batches*size)
		}
	}},
	{"a reader sees a batch completely or not at all", func(t testing.TB, j hook.Journal) {
		const batches, size = 40, 5
		lister := lister(t, j)
		lookWhile(t, func() error {
			for b := range batches {
				if err := j.Append(context.Background(), sampleBatch(b, size)); err != nil {
					return err
				}
			}
			return nil
		}, func() error {
			turns := make(map[string]int)
			for run, err := range lister.List(context.Background(), hook.Filter{}) {
				if err != nil {
					return err
				}
				turns[run.Scope.Turn]++
			}
			for turn, n := range turns {
				if n != size {
					return fmt.Errorf("a listing shows %d of the %d runs of batch %s", n, size, turn)
				}
			}
			return nil
		})
	}},
	{"a run that ends during a listing is seen in its old or its new state", func(t testing.TB, j hook.Journal) {
		const runs = 40
		lister := lister(t, j)
		for i := range runs {
			appendRuns(t, j, sampleRun(fmt.Sprintf("run-%d", i), hook.Started, i))
		}
		lookWhile(t, func() error {
			for i := range runs {
				ended := sampleRun(fmt.Sprintf("run-%d", i), hook.Failed, i)
				ended.Class = codes.Error
				if err := j.Append(context.Background(), []hook.Run{ended}); err != nil {
					return err
				}
			}
			return nil
		}, func() error {
			n := 0
			for run, err := range lister.List(context.Background(), hook.Filter{}) {
				if err != nil {
					return err
				}
				if n++; (run.State == hook.Failed) != (run.Class == codes.Error) {
					return fmt.Errorf("run %s is %s with the code %q: the listing mixes the old and the new state", run.ID, run.State, run.Class)
				}
			}
			if n != runs {
				return fmt.Errorf("a listing shows %d of %d runs", n, runs)
			}
			return nil
		})
	}},
	{"if many end a run in different states, one wins", func(t testing.TB, j hook.Journal) {
		for round := range 10 {
			id := fmt.Sprintf("contested-%d", round)
			appendRuns(t, j, sampleRun(id, hook.Started, round))
			var mu sync.Mutex
			var ended []hook.State
			inParallel(t, len(finalStates), func(i int) error {
				err := j.Append(context.Background(), []hook.Run{sampleRun(id, finalStates[i], round)})
				switch {
				case err == nil:
					mu.Lock()
					defer mu.Unlock()
					ended = append(ended, finalStates[i])
					return nil
				case errors.Is(err, hook.ErrSettled):
					return nil
				default:
					return err
				}
			})
			if len(ended) != 1 {
				t.Fatalf("%d of %d different ends were accepted %v, want 1", len(ended), len(finalStates), ended)
			}
			wantRun(t, j, sampleRun(id, ended[0], round))
		}
	}},
}

// appendVaried appends six runs, a second apart, whose fields have different values for the
// filters.
func appendVaried(t testing.TB, j hook.Journal) {
	t.Helper()
	for i, v := range []struct {
		id, session, turn, phase, subscription, job string
		state                                       hook.State
	}{
		{"a", "s1", "t1", "p1", "u2", "", hook.Completed},
		{"b", "s1", "t1", "p2", "u1", "", hook.Started},
		{"c", "s1", "t2", "p1", "u1", "", hook.Failed},
		{"d", "s1", "t2", "p2", "u1", "j1", hook.Completed},
		{"e", "s2", "t1", "p1", "u1", "j1", hook.TimedOut},
		{"f", "s2", "t2", "p1", "u2", "j2", hook.Backgrounded},
	} {
		run := sampleRun(v.id, v.state, i)
		run.Scope.Session, run.Scope.Turn, run.Phase, run.Subscription, run.Job = v.session, v.turn, v.phase, v.subscription, v.job
		appendRuns(t, j, run)
	}
}

// sampleBatch returns a batch of runs. All have the turn of batch n.
func sampleBatch(n, size int) []hook.Run {
	batch := make([]hook.Run, size)
	for i := range batch {
		batch[i] = sampleRun(fmt.Sprintf("batch-%d.%d", n, i), hook.Completed, n)
		batch[i].Scope.Turn = fmt.Sprintf("turn-%d", n)
	}
	return batch
}

// lister returns the journal as a ListJournal, or skips the rule.
func lister(t testing.TB, j hook.Journal) hook.ListJournal {
	t.Helper()
	l, ok := j.(hook.ListJournal)
	if !ok {
		t.Skip("hooktest: the journal is not a hook.ListJournal")
	}
	return l
}

// wantListed asserts that the filter selects exactly these ids, in this order.
func wantListed(t testing.TB, j hook.Journal, filter hook.Filter, ids ...string) {
	t.Helper()
	var got []string
	for _, run := range listRuns(t, j, filter) {
		got = append(got, run.ID)
	}
	if !slices.Equal(got, ids) {
		t.Errorf("List(%+v) gives %q, want %q", filter, got, ids)
	}
}

// lookWhile calls look repeatedly while work runs, and once more when work is done. It
// reports the first error of each function.
func lookWhile(t testing.TB, work, look func() error) {
	t.Helper()
	done := make(chan struct{})
	inParallel(t, 2, func(who int) error {
		if who == 0 {
			defer close(done)
			return work()
		}
		for {
			select {
			case <-done:
				return look()
			default:
				if err := look(); err != nil {
					return err
				}
			}
		}
	})
}

// inParallel runs n goroutines and reports their errors.
func inParallel(t testing.TB, n int, work func(i int) error) {
	t.Helper()
	failed := make(chan error, n)
	start := make(chan struct{})
	for i := range n {
		go func() { // ends before inParallel returns
			<-start
			failed <- work(i)
		}()
	}
	close(start)
	for range n {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}
