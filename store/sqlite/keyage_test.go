package sqlite_test

import (
	"errors"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/store/sqlite"
)

// A session does not collect the keys of its messages: a key goes after a week, when the session
// gets another one.
func TestOldKeysOfTurnsGo(t *testing.T) {
	t.Parallel()
	clock := hooktest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	s := open(t, &sqlite.Options{Clock: clock})
	submit := func(session, key string) {
		t.Helper()
		turn, err := belay.NewQueuedTurn(session, "main", "hello")
		if err != nil {
			t.Fatal(err)
		}
		turn.Key = belay.SubmitKey{ID: key, Hash: "h"}
		if err := s.Submit(t.Context(), turn); err != nil {
			t.Fatal(err)
		}
	}
	submit("a", "first")
	clock.Advance(6 * 24 * time.Hour)
	submit("a", "second")
	if _, err := s.Submitted(t.Context(), "first"); err != nil {
		t.Errorf("a key of six days is gone: %v", err)
	}
	clock.Advance(2 * 24 * time.Hour)
	submit("a", "third")
	if got, err := s.Submitted(t.Context(), "first"); !errors.Is(err, belay.ErrNotFound) {
		t.Errorf("a key of eight days is %+v, %v, want ErrNotFound", got, err)
	}
	if _, err := s.Submitted(t.Context(), "second"); err != nil {
		t.Errorf("a key of two days is gone: %v", err)
	}
}
