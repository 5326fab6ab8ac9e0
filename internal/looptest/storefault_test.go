package looptest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/store/storetest"
)

// One commit of a rich turn fails, either before it is stored or after it is stored (as
// when the reply of a database is lost). The test does this for each commit. The turn
// must end with that error, turn.post_turn must fire once, and the records of hook runs
// must be kept. The next turn must find a complete transcript: calls without a result
// must get one.
//
// SPEC L-01, L-05, J-03
func TestEveryCommitMayFail(t *testing.T) {
	t.Parallel()
	commits := 0
	synctest.Test(t, func(t *testing.T) {
		plan := new(storetest.Plan)
		r := newRich(t, func(o *belay.Options) { o.Store = storetest.Faulty(riding{o.Store.(*memstore.Store)}, plan) })
		if turn, err := r.session.Turn(t.Context(), richWork); err != nil || turn.Reason != belay.EndTurn {
			t.Fatalf("the turn is %+v, %v", turn, err)
		}
		commits = plan.Commits()
	})
	if commits < 8 {
		t.Fatalf("a rich turn takes %d commits: the test is not worth its name", commits)
	}
	for n := 1; n <= commits; n++ {
		for _, stored := range []bool{false, true} {
			t.Run(fmt.Sprintf("commit %d of %d, stored %t", n, commits, stored), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { failCommit(t, &storetest.Plan{Commit: n, Stored: stored}, n == commits) })
			})
		}
	}
}

func failCommit(t *testing.T, plan *storetest.Plan, last bool) {
	r := newRich(t, func(o *belay.Options) { o.Store = storetest.Faulty(riding{o.Store.(*memstore.Store)}, plan) })
	turn, err := r.session.Turn(t.Context(), richWork)
	if turn.Reason != belay.EndError || !errors.Is(err, storetest.ErrInjected) {
		t.Errorf("the turn is %+v, %v, want the store's error", turn, err)
	}
	want := []string{"1 error"}
	if last {
		want = []string{"1 end_turn"} // only the end of the turn could not be stored
	}
	if got := r.phases.ends(); !slices.Equal(got, want) {
		t.Errorf("turn.post_turn got %v, want %v", got, want)
	}
	if n := r.phases.count(belay.Error.Name()); n != 1 && !last {
		t.Errorf("the phase error fired %d times", n)
	}
	r.goesOn(t)
	r.recorded(t)
	if got := r.phases.ends(); len(got) != 2 {
		t.Errorf("turn.post_turn got %v, want each turn once", got)
	}
	if err := r.session.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if n := r.phases.count(belay.SessionEnd.Name()); n != 1 {
		t.Errorf("session.end fired %d times", n)
	}
}

// turn.post_turn gets the real end reason of a turn, even if the first process ended
// before its end phases were recorded and another process fires the phase.
//
// SPEC L-05
func TestAnEndThatWasNotStoredIsToldAgain(t *testing.T) {
	t.Parallel()
	for _, end := range []belay.EndReason{belay.EndTurn, belay.EndAborted} {
		t.Run(string(end), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				plan := &storetest.Plan{Commit: 10}
				if end == belay.EndAborted {
					plan.Commit = 3
				}
				gone := newRich(t, func(o *belay.Options) { o.Store = storetest.Faulty(o.Store, plan) })
				if turn, err := gone.session.Turn(t.Context(), richWork); turn.Reason != belay.EndError || !errors.Is(err, storetest.ErrInjected) {
					t.Errorf("the turn is %+v, %v", turn, err)
				}
				heir := newRich(t, func(o *belay.Options) { o.Store = gone.store })
				heir.store = gone.store
				heir.goesOn(t)
				if got, want := heir.phases.ends(), []string{"1 " + string(end), "2 end_turn"}; !slices.Equal(got, want) {
					t.Errorf("turn.post_turn got %v, want %v", got, want)
				}
			})
		})
	}
}

// If a store fails permanently, every turn fails, but none hangs or panics. When the
// session is closed, session.end still fires.
//
// SPEC L-05
func TestAStoreThatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		plan := &storetest.Plan{Commit: 3, Rest: true}
		r := newRich(t, func(o *belay.Options) { o.Store = storetest.Faulty(o.Store, plan) })
		for range 3 {
			turn, err := r.session.Turn(t.Context(), richWork)
			if turn.Reason != belay.EndError || !errors.Is(err, storetest.ErrInjected) {
				t.Errorf("the turn is %+v, %v, want the store's error", turn, err)
			}
		}
		if err := r.session.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if n := r.phases.count(belay.SessionEnd.Name()); n != 1 {
			t.Errorf("session.end fired %d times", n)
		}
	})
}

// The caller gets the errors of Open and Release. Later, the session can still be opened.
func TestOpenAndReleaseMayFail(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken on purpose")
	t.Run("open fails once", func(t *testing.T) {
		t.Parallel()
		store := &shakyStore{Store: memstore.New(nil), err: broken}
		store.open.Store(1)
		r := newRich(t, func(o *belay.Options) { o.Store = store })
		r.store = store.Store
		turn, err := r.session.Turn(t.Context(), richWork)
		if turn.Reason != belay.EndError || !errors.Is(err, broken) || turn.ID != "" {
			t.Errorf("the turn is %+v, %v", turn, err)
		}
		if got := r.phases.all(); len(got) > 0 {
			t.Errorf("phases fired: %v", got)
		}
		r.goesOn(t)
	})
	t.Run("release fails after a commit failed", func(t *testing.T) {
		t.Parallel()
		store := &shakyStore{Store: memstore.New(nil), err: broken}
		store.release.Store(1)
		r := newRich(t, func(o *belay.Options) { o.Store = storetest.Faulty(store, &storetest.Plan{Commit: 3}) })
		r.store = store.Store
		if turn, err := r.session.Turn(t.Context(), richWork); turn.Reason != belay.EndError || !errors.Is(err, storetest.ErrInjected) {
			t.Errorf("the turn is %+v, %v", turn, err)
		}
		r.goesOn(t)
	})
	t.Run("release fails when the session is closed", func(t *testing.T) {
		t.Parallel()
		store := &shakyStore{Store: memstore.New(nil), err: broken}
		r := newRich(t, func(o *belay.Options) { o.Store = store })
		r.store = store.Store
		r.goesOn(t)
		store.release.Store(1)
		if err := r.session.Close(t.Context()); !errors.Is(err, broken) {
			t.Errorf("close: %v, want the store's error", err)
		}
		if n := r.phases.count(belay.SessionEnd.Name()); n != 1 {
			t.Errorf("session.end fired %d times", n)
		}
	})
	t.Run("the session is held elsewhere", func(t *testing.T) {
		t.Parallel()
		r := newRich(t, nil)
		stored, err := r.store.Open(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		if turn, err := r.session.Turn(t.Context(), richWork); turn.Reason != belay.EndError || !errors.Is(err, belay.ErrHeld) {
			t.Errorf("the turn is %+v, %v", turn, err)
		}
		if err := r.store.Release(t.Context(), "s", stored.Epoch); err != nil {
			t.Fatal(err)
		}
		r.goesOn(t)
	})
	t.Run("the session is taken over in a turn", func(t *testing.T) {
		t.Parallel()
		r := newRich(t, func(o *belay.Options) {
			o.Tools = append(o.Tools[1:], anyTool("read", func(ctx context.Context, call *belay.Invocation) (belay.Result, error) {
				store := o.Store.(*memstore.Store)
				store.Expire(call.Session)
				stored, err := store.Open(ctx, call.Session)
				if err != nil {
					return belay.Result{}, err
				}
				return belay.Result{Text: "taken"}, store.Release(ctx, call.Session, stored.Epoch)
			}, nil))
		})
		turn, err := r.session.Turn(t.Context(), richWork)
		if turn.Reason != belay.EndError || !errors.Is(err, belay.ErrFenced) {
			t.Errorf("the turn is %+v, %v", turn, err)
		}
		r.goesOn(t)
	})
}

// shakyStore is a store whose Open and Release fail a given number of times.
type shakyStore struct {
	*memstore.Store

	err           error
	open, release atomic.Int64
}

func (s *shakyStore) Open(ctx context.Context, session string) (*belay.Stored, error) {
	if s.open.Add(-1) >= 0 {
		return nil, s.err
	}
	return s.Store.Open(ctx, session)
}

func (s *shakyStore) Release(ctx context.Context, session string, epoch int64) error {
	if s.release.Add(-1) >= 0 {
		return s.err
	}
	return s.Store.Release(ctx, session, epoch)
}
