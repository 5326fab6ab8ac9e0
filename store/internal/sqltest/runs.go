package sqltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
)

// dispatchRuns returns the runs of one dispatch with n hooks.
func dispatchRuns(name string, n int, started time.Time) []hook.Run {
	runs := make([]hook.Run, n)
	for i := range runs {
		runs[i] = hook.Run{
			ID: fmt.Sprintf("%s-%03d", name, i), Subscription: fmt.Sprint("gate-", i), Phase: "tool.pre", Dispatch: name, State: hook.Completed,
			Origin: hook.Origin{File: "hooks.yaml", Line: i}, Scope: hook.Scope{Session: "a", Turn: "turn", Step: 1, Agent: "main"},
			Started: started.Add(time.Duration(i)), Ended: started.Add(time.Duration(2 * i)), Latency: hook.Latency(i),
		}
	}
	return runs
}

// ManyRuns asserts that runs are stored the same, however many of them one Append has.
func (b *Backend) ManyRuns(t *testing.T) {
	t.Helper()
	for _, n := range []int{1, 3, 4, 5, 16, 63, 64, 65, 100, 149} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			s, now := b.Open(t, nil), time.Now()
			runs := dispatchRuns("first", n, now)
			runs[n/2].State, runs[n/2].Class = hook.Failed, "test.failed" // the runs before and after are equal in more columns
			runs[n/3].Diagnostics = []hook.Diagnostic{{Code: "test.note", Message: "a note"}}
			AppendRuns(t, s, runs...)
			wantRuns(t, s, hook.Filter{}, runs)
			AppendRuns(t, s, runs...) // the same runs again change nothing
			wantRuns(t, s, hook.Filter{}, runs)

			// New runs and runs that replace started ones can be mixed.
			mixed := dispatchRuns("mixed", n, now.Add(time.Second))
			var begun []hook.Run
			for i := range mixed {
				if i%3 == 0 {
					begun = append(begun, mixed[i])
					begun[len(begun)-1].State, begun[len(begun)-1].Ended = hook.Started, time.Time{}
				}
			}
			AppendRuns(t, s, begun...)
			AppendRuns(t, s, mixed...)
			wantRuns(t, s, hook.Filter{}, append(slices.Clone(runs), mixed...))

			// If one run has already ended with another state, none is stored.
			late := dispatchRuns("late", n, now.Add(2*time.Second))
			late[n-1].ID = runs[n/2].ID
			if err := s.Journal().Append(context.Background(), late); !errors.Is(err, hook.ErrSettled) {
				t.Errorf("Append of a run that has ended otherwise: %v, want %v", err, hook.ErrSettled)
			}
			wantRuns(t, s, hook.Filter{}, append(slices.Clone(runs), mixed...))
		})
	}
}

// RunsOfSubscription asserts that a listing by subscription finds all runs in order, also
// if there are many other runs and gaps between their positions.
func (b *Backend) RunsOfSubscription(t *testing.T) {
	t.Helper()
	s, now := b.Open(t, nil), time.Now()
	var all []hook.Run
	for i := range 40 {
		some := dispatchRuns(fmt.Sprintf("d%02d", i), 100, now.Add(time.Duration(40-i)*time.Second)) // later positions have earlier times
		if i%7 == 0 {
			some[3].Subscription, some[3].Phase = "rare", "tool.post"
			some[60].Subscription = "rare"
		}
		some[5].Scope.Session = "removed"
		AppendRuns(t, s, some...)
		all = append(all, some...)
	}
	for _, filter := range []hook.Filter{
		{Subscription: "gate-7"},
		{Subscription: "rare"},
		{Subscription: "rare", Phase: "tool.post"},
		{Subscription: "rare", Session: "a"},
		{Subscription: "rare", States: []hook.State{hook.Completed}},
		{Subscription: "rare", States: []hook.State{hook.Failed}},
		{Subscription: "rare", Since: now.Add(10 * time.Second), Until: now.Add(30 * time.Second)},
		{Subscription: "nobody"},
	} {
		for _, newest := range []bool{false, true} {
			for _, limit := range []int{0, 3} {
				filter.Newest, filter.Limit = newest, limit
				want := slices.DeleteFunc(slices.Clone(all), func(r hook.Run) bool { return !filter.Match(r) })
				slices.SortStableFunc(want, func(a, b hook.Run) int { return a.Started.Compare(b.Started) })
				if newest {
					slices.Reverse(want)
				}
				if limit > 0 && len(want) > limit {
					want = want[:limit]
				}
				wantRuns(t, s, filter, want)
			}
		}
	}
}

// wantRuns asserts the result of a listing.
func wantRuns(t testing.TB, s Store, filter hook.Filter, want []hook.Run) {
	t.Helper()
	var got []hook.Run
	for r, err := range s.Journal().(hook.ListJournal).List(context.Background(), filter) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	if len(got) != len(want) {
		t.Fatalf("%+v lists %d runs, want %d", filter, len(got), len(want))
	}
	for i := range got {
		if g, w := fmt.Sprintf("%+v", utc(got[i])), fmt.Sprintf("%+v", utc(want[i])); g != w {
			t.Fatalf("%+v: run %d is\n%s\nwant\n%s", filter, i, g, w)
		}
	}
}

// utc returns a run with times that can be compared as text.
func utc(r hook.Run) hook.Run {
	r.Started, r.Ended = r.Started.UTC().Round(0), r.Ended.UTC().Round(0)
	return r
}
