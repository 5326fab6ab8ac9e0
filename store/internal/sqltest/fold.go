package sqltest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
)

// dispatches makes random runs. A run always belongs to the same dispatch.
type dispatches struct {
	*rand.Rand
	at time.Time
}

// run returns run i of a dispatch. Most runs of a dispatch are equal in most fields.
func (d *dispatches) run(dispatch, i int) hook.Run {
	seed := rand.New(rand.NewPCG(uint64(dispatch), uint64(i)))
	at := d.at.Add(time.Duration(dispatch)*3*time.Millisecond + time.Duration(i)*time.Duration(dispatch%4)*200*time.Microsecond)
	r := hook.Run{
		ID: fmt.Sprintf("run-%d-%d", dispatch, i), Subscription: fmt.Sprint("gate-", i%7), Version: fmt.Sprint(i % 2), Phase: fmt.Sprint("phase-", dispatch%3),
		Dispatch: fmt.Sprint("dispatch-", dispatch), State: hook.Completed, Origin: hook.Origin{Name: "name", File: fmt.Sprint("file-", i%5), Line: i},
		Scope: hook.Scope{Session: fmt.Sprint("session-", dispatch%2), Turn: fmt.Sprint("turn-", dispatch%5), Step: 1}, Started: at,
		Audit: []hook.Audit{{Code: "dispatch", Message: fmt.Sprint(dispatch)}},
	}
	switch seed.IntN(24) {
	case 0:
		r.State, r.Class = hook.Failed, "test.failed"
	case 1:
		r.Started = at.Add(-time.Millisecond)
	case 2:
		r.Started = at.Add(20 * time.Millisecond)
	case 3:
		r.Attempt = 1
	case 4:
		r.ID += " ;ü" // an id that a folded row cannot hold
	}
	r.Latency = hook.Latency(seed.IntN(1000))
	r.Ended = r.Started.Add(time.Duration(r.Latency))
	if seed.IntN(8) == 0 {
		r.Latency, r.Ended = 7, time.Time{}
	}
	return r
}

// batch returns runs for one Append: parts of one or two dispatches, some of them again.
func (d *dispatches) batch() (runs []hook.Run) {
	for range 1 + d.IntN(2) {
		dispatch, from, n := d.IntN(12), d.IntN(40), 1+d.IntN(30)
		for i := from; i < from+n; i++ {
			r := d.run(dispatch, i)
			switch d.IntN(60) {
			case 0:
				r.State, r.Ended = hook.Started, time.Time{}
			case 1:
				runs = append(runs, r)
			case 2:
				if d.IntN(8) == 0 {
					r.State = hook.TimedOut // another state than the one that may be stored
				}
			}
			runs = append(runs, r)
		}
	}
	return runs
}

// FoldedRuns asserts that a journal does the same as hook.MemoryJournal, whatever the
// batches of runs are. The batches overlap, and repeat runs that are stored already.
func (b *Backend) FoldedRuns(t *testing.T) {
	t.Helper()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s, model := b.Open(t, nil), hook.NewMemoryJournal(100_000)
			d := &dispatches{rand.New(rand.NewPCG(seed, 0)), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
			for range 40 {
				runs := d.batch()
				want := model.Append(context.Background(), runs)
				if got := s.Journal().Append(context.Background(), runs); errors.Is(got, hook.ErrSettled) != errors.Is(want, hook.ErrSettled) || (got == nil) != (want == nil) {
					t.Fatalf("Append gives %v, want %v", got, want)
				}
			}
			d.wantSame(t, s, model)
		})
	}
}

// FoldedRunsNearBounds asserts that a listing with a limit finds enough runs, even if rows
// near Since or Until have no run that matches.
func (b *Backend) FoldedRunsNearBounds(t *testing.T) {
	t.Helper()
	s, at := b.Open(t, nil), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var all []hook.Run
	for i, ms := range []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 25, 26, 45, 45.1, 45.2, 45.3, 45.4} {
		runs := dispatchRuns(fmt.Sprint("d", i), 5, at.Add(time.Duration(ms*float64(time.Millisecond))))
		for j := range runs {
			if runs[j].Origin.Line = 0; j == 4 && ms > 40 { // the last run starts later
				runs[j].Started = at.Add(49 * time.Millisecond)
			}
		}
		if b.Fold != nil {
			b.Fold(t, s, runs)
		} else {
			AppendRuns(t, s, runs...)
		}
		all = append(all, runs...)
	}
	slices.SortStableFunc(all, func(a, b hook.Run) int { return a.Started.Compare(b.Started) })
	for _, filter := range []hook.Filter{
		{Since: at.Add(9500 * time.Microsecond)},
		{Until: at.Add(48 * time.Millisecond), Subscription: "gate-4", Newest: true},
	} {
		for _, session := range []string{"", "a"} {
			for _, limit := range []int{1, 2, 3, 300} {
				filter.Limit, filter.Session = limit, session
				want := slices.DeleteFunc(slices.Clone(all), func(r hook.Run) bool { return !filter.Match(r) })
				if filter.Newest {
					slices.Reverse(want)
				}
				wantRuns(t, s, filter, want[:min(limit, len(want))])
			}
		}
	}
}

// wantSame asserts that listings of a store and of the model are equal.
func (d *dispatches) wantSame(t *testing.T, s Store, model *hook.MemoryJournal) {
	t.Helper()
	all := []hook.Run{}
	for r, err := range model.List(context.Background(), hook.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b hook.Run) int { return a.Started.Compare(b.Started) })
	for range 60 {
		filter := d.filter(all)
		want := slices.DeleteFunc(slices.Clone(all), func(r hook.Run) bool { return !filter.Match(r) })
		if filter.Newest {
			slices.Reverse(want)
		}
		if filter.Limit > 0 {
			want = want[:min(filter.Limit, len(want))]
		}
		wantRuns(t, s, filter, want)
	}
}

// filter returns a random filter.
func (d *dispatches) filter(all []hook.Run) (f hook.Filter) {
	some := all[d.IntN(len(all))]
	maybe := func(set func()) {
		if d.IntN(4) == 0 {
			set()
		}
	}
	maybe(func() { f.Session = some.Scope.Session })
	maybe(func() { f.Turn = some.Scope.Turn })
	maybe(func() { f.Phase = some.Phase })
	maybe(func() { f.Subscription = some.Subscription })
	maybe(func() { f.States = []hook.State{some.State, hook.Interrupted} })
	maybe(func() { f.Since = some.Started })
	maybe(func() { f.Until = all[d.IntN(len(all))].Started })
	if d.IntN(2) == 0 {
		f.Limit = []int{1, 2, 5, 40, 300}[d.IntN(5)]
	}
	f.Newest = d.IntN(2) == 0
	return f
}

// FollowFolded asserts that a follower gets each run of large dispatches once and in order.
func (b *Backend) FollowFolded(t *testing.T) {
	t.Helper()
	s, at := b.Open(t, nil), time.Now()
	var want []string
	var once sync.Once
	got, begun := make(chan string, 10_000), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { // ends when ctx is cancelled
		defer close(ended)
		for r, err := range s.Journal().(hook.FollowJournal).Follow(ctx, hook.Filter{}) {
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				t.Error(err)
				return
			case r.Dispatch != "":
				got <- r.ID
			default:
				once.Do(func() { close(begun) })
			}
		}
	}()
	defer func() {
		cancel()
		<-ended
	}()
	for i := 0; ; i++ { // until the follower sees a run
		AppendRuns(t, s, Run(fmt.Sprint("before-", i), hook.Completed))
		select {
		case <-begun:
		case <-time.After(20 * time.Millisecond):
			continue
		}
		break
	}
	for i, n := range []int{1, 100, 700, 3, 255, 256, 257, 4, 900} {
		runs := dispatchRuns(fmt.Sprint("dispatch-", i), n, at)
		for _, r := range runs {
			want = append(want, r.ID)
		}
		AppendRuns(t, s, runs...)
		AppendRuns(t, s, runs[n/2:]...) // these runs are stored already
	}
	for i, id := range want {
		select {
		case seen := <-got:
			if seen != id {
				t.Fatalf("run %d is %s, want %s", i, seen, id)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the follower got %d runs, want %d", i, len(want))
		}
	}
}
