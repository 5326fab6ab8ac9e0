package memstore_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/store/memstore"
)

// open opens a session and fails the test on an error.
func open(t testing.TB, s *memstore.Store, session string) *belay.Stored {
	t.Helper()
	stored, err := s.Open(context.Background(), session)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// commit commits to the session "a" and fails the test on an error.
func commit(t testing.TB, s *memstore.Store, epoch int64, c belay.Commit) {
	t.Helper()
	c.Session, c.Epoch = "a", epoch
	if err := s.Commit(context.Background(), &c); err != nil {
		t.Fatal(err)
	}
}

func message(seq int64) *belay.Message {
	return &belay.Message{Seq: seq, Role: belay.RoleUser, Kind: belay.KindUser, Parts: []belay.Part{belay.Text("text")}}
}

func names(t testing.TB, s *memstore.Store) []string {
	t.Helper()
	var names []string
	for info, err := range s.Sessions(context.Background(), belay.SessionFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, info.ID)
	}
	return names
}

func TestForget(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), memstore.New(nil)
	former := open(t, s, "a")
	s.Expire("a")
	stored := open(t, s, "a")
	commit(t, s, stored.Epoch, belay.Commit{
		Messages: []*belay.Message{message(1)}, Approvals: []belay.Approval{{ID: "approval", Session: "a", Hash: "hash"}},
	})
	open(t, s, "b")
	if err := s.Forget("a"); !errors.Is(err, belay.ErrHeld) {
		t.Errorf("forgetting a session that is held gives %v, want %v", err, belay.ErrHeld)
	}
	if err := s.Release(ctx, "a", stored.Epoch); err != nil {
		t.Fatal(err)
	}
	if err := s.Forget("a"); err != nil {
		t.Errorf("forgetting a session: %v", err)
	}
	if err := s.Forget("a"); !errors.Is(err, belay.ErrNotFound) {
		t.Errorf("forgetting a session twice gives %v, want %v", err, belay.ErrNotFound)
	}
	if got, want := names(t, s), []string{"b"}; !slices.Equal(got, want) {
		t.Errorf("the sessions are %q, want %q", got, want)
	}
	if _, err := s.Decide(ctx, belay.Decision{Approval: "approval", Hash: "hash"}); !errors.Is(err, belay.ErrNotFound) {
		t.Errorf("an approval of a forgotten session gives %v, want %v", err, belay.ErrNotFound)
	}
	for a, err := range s.Approvals(ctx, belay.ApprovalFilter{}) {
		t.Errorf("an approval of a forgotten session is listed: %+v, %v", a, err)
	}
	again := open(t, s, "a")
	if again.Last != 0 || again.Epoch <= stored.Epoch {
		t.Errorf("a session of a forgotten name has %d messages and epoch %d after %d, want none and a higher one", again.Last, again.Epoch, stored.Epoch)
	}
	for _, epoch := range []int64{former.Epoch, stored.Epoch} {
		if err := s.Commit(ctx, &belay.Commit{Session: "a", Epoch: epoch}); !errors.Is(err, belay.ErrFenced) {
			t.Errorf("a holder from before the session was forgotten gives %v, want %v", err, belay.ErrFenced)
		}
	}
}

func TestForgetAHoldThatIsGone(t *testing.T) {
	t.Parallel()
	s := memstore.New(nil)
	open(t, s, "a")
	s.Expire("a")
	s.Expire("nobody")
	if err := s.Forget("a"); err != nil {
		t.Errorf("forgetting a session whose holder is gone: %v", err)
	}
}

func TestExpiryGoesByTheClock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	clock := hooktest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	s := memstore.New(&memstore.Options{Clock: clock})
	epoch := open(t, s, "a").Epoch
	commit(t, s, epoch, belay.Commit{Approvals: []belay.Approval{
		{ID: "one", Session: "a", Expires: clock.Now().Add(time.Minute)}, {ID: "two", Session: "a", Expires: clock.Now().Add(time.Minute)},
	}})
	clock.Advance(time.Minute - 1)
	if _, err := s.Decide(ctx, belay.Decision{Approval: "one"}); err != nil {
		t.Errorf("a nanosecond before it expires: %v", err)
	}
	clock.Advance(1)
	a, err := s.Decide(ctx, belay.Decision{Approval: "two"})
	if !errors.Is(err, belay.ErrExpired) || a.ID != "two" {
		t.Errorf("when it expires: %v with approval %q, want %v with the approval as it stands", err, a.ID, belay.ErrExpired)
	}
	if a, err = s.Decide(ctx, belay.Decision{Approval: "one"}); !errors.Is(err, belay.ErrDecided) || a.Decided == nil {
		t.Errorf("when it was decided: %v with %+v, want %v with who did", err, a, belay.ErrDecided)
	}
}

func TestCancelledCallsAreRefused(t *testing.T) {
	t.Parallel()
	s := memstore.New(nil)
	epoch := open(t, s, "a").Epoch
	why := errors.New("the user left")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	if err := s.Commit(ctx, &belay.Commit{Session: "a", Epoch: epoch}); !errors.Is(err, why) {
		t.Errorf("Commit gives %v, want the cause", err)
	}
	if _, err := s.Open(ctx, "b"); !errors.Is(err, why) {
		t.Errorf("Open gives %v, want the cause", err)
	}
	if _, err := s.Decide(ctx, belay.Decision{}); !errors.Is(err, why) {
		t.Errorf("Decide gives %v, want the cause", err)
	}
	if got := names(t, s); len(got) != 1 {
		t.Errorf("the sessions are %q, want the one that was opened", got)
	}
}
