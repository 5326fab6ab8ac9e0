package storetest_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/store/storetest"
)

func TestFaulty(t *testing.T) {
	t.Parallel()
	gone := errors.New("the disk is gone")
	for _, test := range []struct {
		rule   string
		plan   *storetest.Plan
		errs   [3]error // results of three commits, each with the next message
		stored int64
		failed bool
	}{
		{"the zero plan lets none fail", &storetest.Plan{}, [3]error{}, 3, false},
		{"a commit fails with nothing stored", &storetest.Plan{Commit: 2}, [3]error{nil, storetest.ErrInjected, nil}, 2, true},
		{"a commit fails after it was stored", &storetest.Plan{Commit: 2, Stored: true}, [3]error{nil, storetest.ErrInjected, belay.ErrConflict}, 2, true},
		{"a commit fails and so does the rest", &storetest.Plan{Commit: 2, Rest: true}, [3]error{nil, storetest.ErrInjected, storetest.ErrInjected}, 1, true},
		{"a commit is the last that is stored", &storetest.Plan{Commit: 2, Stored: true, Rest: true}, [3]error{nil, storetest.ErrInjected, storetest.ErrInjected}, 2, true},
		{"a commit fails with an error of choice", &storetest.Plan{Commit: 1, Rest: true, Err: gone}, [3]error{gone, gone, gone}, 0, true},
		{"a commit that never comes does not fail", &storetest.Plan{Commit: 4}, [3]error{}, 3, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			inner := memstore.New(nil)
			store := storetest.Faulty(inner, test.plan)
			stored, err := store.Open(ctx, "a")
			if err != nil {
				t.Fatal(err)
			}
			next := int64(1)
			for i, want := range test.errs {
				c := &belay.Commit{Session: "a", Epoch: stored.Epoch, Messages: []*belay.Message{{Seq: next}}}
				err := store.Commit(ctx, c)
				if !errors.Is(err, want) {
					t.Errorf("commit %d gave %v, want %v", i+1, err, want)
				}
				if err == nil {
					next++
				}
			}
			if err := inner.Release(ctx, "a", stored.Epoch); err != nil {
				t.Fatal(err)
			}
			after, err := inner.Open(ctx, "a")
			if err != nil {
				t.Fatal(err)
			}
			if after.Last != test.stored || test.plan.Commits() != 3 || test.plan.Failed() != test.failed {
				t.Errorf("%d messages are stored, %d commits counted, failed is %t; want %d, 3 and %t",
					after.Last, test.plan.Commits(), test.plan.Failed(), test.stored, test.failed)
			}
		})
	}
}

func TestFaultyIsAJournalStoreIfItsStoreIs(t *testing.T) {
	t.Parallel()
	inner := memstore.New(nil)
	js, ok := storetest.Faulty(inner, &storetest.Plan{}).(belay.JournalStore)
	if !ok || js.Journal() != inner.Journal() || js.Queue() != inner.Queue() {
		t.Error("the journal and the queue of the store are not passed on")
	}
	without := storetest.Faulty(plain{inner}, &storetest.Plan{Commit: 1})
	if _, ok := without.(belay.JournalStore); ok {
		t.Error("a store without a journal has become one that has")
	}
	if err := without.Commit(context.Background(), &belay.Commit{Session: "a"}); !errors.Is(err, storetest.ErrInjected) {
		t.Errorf("a commit to a store without a journal gave %v, want %v", err, storetest.ErrInjected)
	}
}

func TestFaultyIsAListStoreIfItsStoreIs(t *testing.T) {
	t.Parallel()
	ctx, inner := context.Background(), memstore.New(nil)
	if _, err := inner.Open(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	for name, store := range map[string]belay.Store{
		"with a journal": inner, "without a journal": struct{ belay.ListStore }{inner},
	} {
		wrapped := storetest.Faulty(store, &storetest.Plan{Commit: 1})
		list, ok := wrapped.(belay.ListStore)
		if !ok {
			t.Errorf("a store that can be looked through, %s, has become one that cannot", name)
			continue
		}
		var names []string
		for info, err := range list.Sessions(ctx, belay.SessionFilter{}) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, info.ID)
		}
		if !slices.Equal(names, []string{"a"}) {
			t.Errorf("a store %s lists %q, want a", name, names)
		}
		if err := wrapped.Commit(ctx, &belay.Commit{Session: "a"}); !errors.Is(err, storetest.ErrInjected) {
			t.Errorf("a commit to a store %s gave %v, want %v", name, err, storetest.ErrInjected)
		}
	}
	for name, store := range map[string]belay.Store{
		"with a journal": struct{ belay.JournalStore }{inner}, "without a journal": plain{inner},
	} {
		if _, ok := storetest.Faulty(store, &storetest.Plan{}).(belay.ListStore); ok {
			t.Errorf("a store that cannot be looked through, %s, has become one that can", name)
		}
	}
}

// A faulty store that never fails passes every rule.
func TestFaultyKeepsTheRules(t *testing.T) {
	t.Parallel()
	storetest.Test(t, func(testing.TB) belay.Store {
		return storetest.Faulty(memstore.New(&memstore.Options{MaxJobs: 8}), &storetest.Plan{})
	}, nil)
}
