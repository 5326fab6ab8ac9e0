package memstore_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/store/memstore"
)

func TestListingGoesByTheClock(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := hooktest.NewClock(noon)
	s := memstore.New(&memstore.Options{Clock: clock})
	epoch := open(t, s, "a").Epoch
	clock.Advance(time.Minute)
	commit(t, s, epoch, belay.Commit{})
	clock.Advance(time.Minute)
	for info, err := range s.Sessions(context.Background(), belay.SessionFilter{}) {
		if err != nil || !info.Created.Equal(noon) || !info.Changed.Equal(noon.Add(time.Minute)) {
			t.Errorf("it was made at %v and changed at %v, with the error %v; want %v and a minute later", info.Created, info.Changed, err, noon)
		}
	}
}

// A clock that does not advance does not change the order.
func TestListingKeepsTheOrderWithinOneTime(t *testing.T) {
	t.Parallel()
	s := memstore.New(&memstore.Options{Clock: hooktest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))})
	epoch := open(t, s, "a").Epoch
	for _, name := range []string{"b", "c", "d", "e", "f"} {
		open(t, s, name)
	}
	var want []string
	for _, id := range []string{"z", "y", "x", "w", "v"} {
		commit(t, s, epoch, belay.Commit{Approvals: []belay.Approval{{ID: id, Session: "a"}}})
		want = append(want, id)
	}
	if got, want := names(t, s), []string{"a", "f", "e", "d", "c", "b"}; !slices.Equal(got, want) {
		t.Errorf("the sessions are %q, want %q", got, want)
	}
	var got []string
	for a, err := range s.Approvals(context.Background(), belay.ApprovalFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, a.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the approvals are %q, want %q", got, want)
	}
}
