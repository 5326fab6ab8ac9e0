package storetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/belay-run/belay"
)

// TestKeys checks an implementation of [belay.KeyStore] against the contract of its keys. open
// returns an empty store. Clean up with t.Cleanup.
func TestKeys(t *testing.T, open func(t testing.TB) belay.KeyStore) {
	t.Helper()
	for _, r := range keyRules {
		t.Run(r.name, func(t *testing.T) { r.check(t, open(t)) })
	}
}

// keyed makes a queued turn with a key.
func keyed(t testing.TB, session, key, hash string) belay.QueuedTurn {
	t.Helper()
	turn, err := belay.NewQueuedTurn(session, "main", "hello")
	if err != nil {
		t.Fatal(err)
	}
	turn.Key = belay.SubmitKey{ID: key, Hash: hash, After: "7"}
	return turn
}

// keyRules are the requirements for a KeyStore.
var keyRules = []struct {
	name  string
	check func(t testing.TB, s belay.KeyStore)
}{
	{"a key that nobody used is not found", func(t testing.TB, s belay.KeyStore) {
		t.Helper()
		if got, err := s.Submitted(t.Context(), "k"); !errors.Is(err, belay.ErrNotFound) {
			t.Errorf("Submitted returns %+v, %v, want ErrNotFound", got, err)
		}
	}},
	{"a key is taken once, also after its turn has begun", func(t testing.TB, s belay.KeyStore) {
		t.Helper()
		first := keyed(t, "a", "k", "h")
		if err := s.Submit(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			for session, hash := range map[string]string{"a": "h", "b": "other"} {
				var before *belay.SubmittedError
				if err := s.Submit(t.Context(), keyed(t, session, "k", hash)); !errors.As(err, &before) || before.Turn != first.ID || before.Session != "a" || before.Key.Hash != "h" || before.Key.After != "7" || before.Time.IsZero() {
					t.Errorf("the second Submit returns %+v, want the first turn", err)
				}
			}
			if got, err := s.Submitted(t.Context(), "k"); err != nil || got.Turn != first.ID || got.Session != "a" || got.Key.ID != "k" {
				t.Errorf("Submitted returns %+v, %v, want the first turn", got, err)
			}
			if waiting, err := s.Queued(t.Context(), "b"); err != nil || len(waiting) > 0 {
				t.Errorf("a refused turn is queued: %+v, %v", waiting, err)
			}
			waiting, err := s.Queued(t.Context(), "a")
			if err != nil || len(waiting) > 1 {
				t.Fatalf("the queue has %+v, %v, want at most the first turn", waiting, err)
			}
			if len(waiting) == 0 {
				break
			}
			stored, err := s.Open(t.Context(), "a")
			if err == nil {
				err = s.Commit(t.Context(), &belay.Commit{Session: "a", Epoch: stored.Epoch, Queued: first.ID, Messages: []*belay.Message{user(1, "hello")}})
			}
			if err == nil {
				err = s.Release(t.Context(), "a", stored.Epoch)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}},
	{"turns without a key are all stored", func(t testing.TB, s belay.KeyStore) {
		t.Helper()
		for range 2 {
			if err := s.Submit(t.Context(), keyed(t, "a", "", "h")); err != nil {
				t.Fatal(err)
			}
		}
		if waiting, err := s.Queued(t.Context(), "a"); err != nil || len(waiting) != 2 {
			t.Errorf("the queue has %+v, %v, want both turns", waiting, err)
		}
	}},
	{"a key that may be replaced names the last turn", func(t testing.TB, s belay.KeyStore) {
		t.Helper()
		var last belay.QueuedTurn
		for _, session := range []string{"a", "b"} {
			last = keyed(t, session, "k", "h")
			last.Key.Replace = true
			if err := s.Submit(t.Context(), last); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := s.Submitted(t.Context(), "k"); err != nil || got.Turn != last.ID || got.Session != "b" {
			t.Errorf("Submitted returns %+v, %v, want the last turn", got, err)
		}
	}},
	{"of turns that are submitted at once with one key, one is stored", func(t testing.TB, s belay.KeyStore) {
		t.Helper()
		var stored, refused atomic.Int32
		var all sync.WaitGroup
		for range 8 {
			turn := keyed(t, "a", "k", "h")
			all.Go(func() {
				var before *belay.SubmittedError
				switch err := s.Submit(t.Context(), turn); {
				case err == nil:
					stored.Add(1)
				case errors.As(err, &before):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if stored.Load() != 1 || refused.Load() != 7 {
			t.Errorf("%d turns are stored and %d refused, want 1 and 7", stored.Load(), refused.Load())
		}
	}},
	{"a turn that follows a message is stored only if nothing else follows it", func(t testing.TB, s belay.KeyStore) {
		t.Helper()
		openTurn(t, s)
		following := func(session string, message int64) error {
			turn := keyed(t, session, "", "")
			turn.Follows = message
			return s.Submit(t.Context(), turn)
		}
		refused := func(session string, message int64, why string) {
			t.Helper()
			before, err := s.Queued(t.Context(), session)
			if err != nil {
				t.Fatal(err)
			}
			if err := following(session, message); !errors.Is(err, belay.ErrConflict) {
				t.Errorf("%s: Submit returns %v, want ErrConflict", why, err)
			}
			if after, err := s.Queued(t.Context(), session); err != nil || len(after) != len(before) {
				t.Errorf("%s: the queue has %d turns, %v, want %d", why, len(after), err, len(before))
			}
		}
		refused("a", 1, "a turn is open")
		stored, err := s.Open(t.Context(), "a")
		if err == nil {
			err = s.Commit(t.Context(), &belay.Commit{Session: "a", Epoch: stored.Epoch, Messages: []*belay.Message{user(2, "more")}, State: &belay.SessionState{}})
		}
		if err == nil {
			err = s.Release(t.Context(), "a", stored.Epoch)
		}
		if err != nil {
			t.Fatal(err)
		}
		refused("a", 1, "another message follows")
		refused("b", 1, "the session does not exist")
		if err := following("a", 2); err != nil {
			t.Errorf("a turn that follows the last message: %v", err)
		}
		refused("a", 2, "another turn is queued")
	}},
	{"of turns that are submitted at once after one message, one is stored", func(t testing.TB, s belay.KeyStore) {
		t.Helper()
		stored, err := s.Open(t.Context(), "a")
		if err == nil {
			err = s.Commit(t.Context(), &belay.Commit{Session: "a", Epoch: stored.Epoch, Messages: []*belay.Message{user(1, "hello")}})
		}
		if err == nil {
			err = s.Release(t.Context(), "a", stored.Epoch)
		}
		if err != nil {
			t.Fatal(err)
		}
		var accepted, refused atomic.Int32
		var all sync.WaitGroup
		for range 8 {
			turn := keyed(t, "a", "", "")
			turn.Follows = 1
			all.Go(func() {
				switch err := s.Submit(t.Context(), turn); {
				case err == nil:
					accepted.Add(1)
				case errors.Is(err, belay.ErrConflict):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if accepted.Load() != 1 || refused.Load() != 7 {
			t.Errorf("%d turns are stored and %d refused, want 1 and 7", accepted.Load(), refused.Load())
		}
	}},
	{"the keys of a session go with the session", func(t testing.TB, s belay.KeyStore) {
		t.Helper()
		manage, ok := s.(belay.ManageStore)
		if !ok {
			return
		}
		if err := s.Submit(t.Context(), keyed(t, "a", "k", "h")); err != nil {
			t.Fatal(err)
		}
		if err := manage.Delete(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Submitted(t.Context(), "k"); !errors.Is(err, belay.ErrNotFound) {
			t.Errorf("Submitted returns %+v, %v, want ErrNotFound", got, err)
		}
	}},
}
