package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belay-run/belay"
)

// TestRequeue checks an implementation of [belay.RequeueStore] against the contract of its own
// methods. open returns an empty store. Clean up with t.Cleanup.
func TestRequeue(t *testing.T, open func(t testing.TB) belay.RequeueStore) {
	t.Helper()
	for _, r := range requeueRules {
		t.Run(r.name, func(t *testing.T) { r.check(t, open(t)) })
	}
}

// requeueRules are the requirements for a RequeueStore.
var requeueRules = []struct {
	name  string
	check func(t testing.TB, s belay.RequeueStore)
}{
	{"a session that does not exist is not queued", func(t testing.TB, s belay.RequeueStore) {
		t.Helper()
		if err := s.Requeue(t.Context(), belay.DueTurn{Session: "nobody", Agent: "main"}); !errors.Is(err, belay.ErrNotFound) {
			t.Errorf("Requeue returns %v, want ErrNotFound", err)
		}
	}},
	{"a session that was not queued is due", func(t testing.TB, s belay.RequeueStore) {
		t.Helper()
		makeSession(t, s)
		if err := s.Requeue(t.Context(), belay.DueTurn{Session: "a", Agent: "reviewer", Model: "big"}); err != nil {
			t.Fatal(err)
		}
		if due := claimNow(t, s); due.Session != "a" || due.Agent != "reviewer" || due.Model != "big" || due.Abort != "" {
			t.Errorf("the claimed turn is %+v", due)
		}
	}},
	{"a request to abort reaches the store that has claimed the turn", func(t testing.TB, s belay.RequeueStore) {
		t.Helper()
		makeSession(t, s)
		if err := s.Requeue(t.Context(), belay.DueTurn{Session: "a", Agent: "main"}); err != nil {
			t.Fatal(err)
		}
		due := claimNow(t, s)
		if all := abortsOf(t, s); len(all) != 0 {
			t.Errorf("before the request there are %+v", all)
		}
		if err := s.Requeue(t.Context(), belay.DueTurn{Session: "a", Agent: "main", Abort: "ann"}); err != nil {
			t.Fatal(err)
		}
		if all := abortsOf(t, s); len(all) != 1 || all[0].Session != "a" || all[0].Abort != "ann" {
			t.Errorf("the turns to abort are %+v, want that of session a, by ann", all)
		}
		if err := s.Settle(t.Context(), due, time.Time{}); err != nil {
			t.Fatal(err)
		}
		if again := claimNow(t, s); again.Abort != "" {
			t.Errorf("the next turn is claimed as %+v, want it without the request of the one before", again)
		}
	}},
	{"a request to abort names its turn", func(t testing.TB, s belay.RequeueStore) {
		t.Helper()
		makeSession(t, s)
		request := belay.DueTurn{Session: "a", Agent: "main", Abort: "ann", AbortTurn: "turn-7"}
		if err := s.Requeue(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		due := claimNow(t, s)
		if due.Abort != "ann" || due.AbortTurn != "turn-7" {
			t.Errorf("the claimed turn is %+v, want the request for turn-7", due)
		}
		if all := abortsOf(t, s); len(all) != 1 || all[0].AbortTurn != "turn-7" {
			t.Errorf("the turns to abort are %+v, want turn-7", all)
		}
		request.AbortTurn = "turn-8"
		if err := s.Requeue(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		if all := abortsOf(t, s); len(all) != 1 || all[0].AbortTurn != "turn-8" {
			t.Errorf("after a second request the turns to abort are %+v, want turn-8", all)
		}
		if err := s.Settle(t.Context(), due, time.Time{}); err != nil {
			t.Fatal(err)
		}
		if again := claimNow(t, s); again.Abort != "" || again.AbortTurn != "" {
			t.Errorf("the next turn is claimed as %+v, want it without a request", again)
		}
	}},
	{"a request to abort waits for the next claim", func(t testing.TB, s belay.RequeueStore) {
		t.Helper()
		makeSession(t, s)
		if err := s.Requeue(t.Context(), belay.DueTurn{Session: "a", Agent: "main", Abort: "ann"}); err != nil {
			t.Fatal(err)
		}
		due := claimNow(t, s)
		if due.Abort != "ann" {
			t.Errorf("the claimed turn is %+v, want it with the request", due)
		}
		if err := s.Settle(t.Context(), due, time.Now().Add(-time.Second)); err != nil {
			t.Fatal(err)
		}
		if due := claimNow(t, s); due.Abort != "ann" {
			t.Errorf("after a hand-over the turn is %+v, want it with the request", due)
		}
	}},
	{"a queued turn that was withdrawn is not due, and the next one is, for its own agent", func(t testing.TB, s belay.RequeueStore) {
		t.Helper()
		first, second := submitFor(t, s, "main", ""), submitFor(t, s, "reviewer", "big")
		withdraw(t, s, first)
		if due := claimNow(t, s); due.Session != "a" || due.Agent != "reviewer" || due.Model != "big" {
			t.Errorf("the claimed turn is %+v, want that of reviewer", due)
		}
		if waiting, err := s.Queued(t.Context(), "a"); err != nil || len(waiting) != 1 || waiting[0].ID != second {
			t.Errorf("the queue has %+v, %v, want the second turn", waiting, err)
		}
	}},
	{"a session without a turn leaves the list when its last queued turn is withdrawn", func(t testing.TB, s belay.RequeueStore) {
		t.Helper()
		withdraw(t, s, submitFor(t, s, "main", ""))
		if load, err := s.Load(t.Context()); err != nil || load.Waiting != 0 {
			t.Errorf("%d turns wait, %v, want none", load.Waiting, err)
		}
	}},
	{"an open turn stays in the list when a turn behind it is withdrawn", func(t testing.TB, s belay.RequeueStore) {
		t.Helper()
		openTurn(t, s)
		if err := s.Requeue(t.Context(), belay.DueTurn{Session: "a", Agent: "main"}); err != nil {
			t.Fatal(err)
		}
		withdraw(t, s, submitFor(t, s, "reviewer", ""))
		if due := claimNow(t, s); due.Session != "a" || due.Agent != "main" {
			t.Errorf("the claimed turn is %+v, want the open turn of main", due)
		}
	}},
	{"only a queued turn of the session can be withdrawn", func(t testing.TB, s belay.RequeueStore) {
		t.Helper()
		turn := submitFor(t, s, "main", "")
		for session, id := range map[string]string{"a": "turn-other", "b": turn, "\x00": turn} {
			if err := s.Withdraw(t.Context(), session, id); !errors.Is(err, belay.ErrNotFound) {
				t.Errorf("Withdraw(%q, %q) returns %v, want ErrNotFound", session, id, err)
			}
		}
		stored, err := s.Open(t.Context(), "a")
		if err == nil {
			err = s.Commit(t.Context(), &belay.Commit{Session: "a", Epoch: stored.Epoch, Queued: turn, Messages: []*belay.Message{user(1, "hello")}})
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Withdraw(t.Context(), "a", turn); !errors.Is(err, belay.ErrNotFound) {
			t.Errorf("Withdraw of a turn that has begun returns %v, want ErrNotFound", err)
		}
	}},
	{"a turn that was withdrawn cannot begin", func(t testing.TB, s belay.RequeueStore) {
		t.Helper()
		turn := submitFor(t, s, "main", "")
		stored, err := s.Open(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		withdraw(t, s, turn)
		if err := s.Commit(t.Context(), &belay.Commit{Session: "a", Epoch: stored.Epoch, Queued: turn, Messages: []*belay.Message{user(1, "hello")}}); !errors.Is(err, belay.ErrConflict) {
			t.Errorf("Commit returns %v, want ErrConflict", err)
		}
	}},
}

// submitFor submits a turn of session "a" and returns its id.
func submitFor(t testing.TB, s belay.RequeueStore, agent, model string) string {
	t.Helper()
	turn, err := belay.NewQueuedTurn("a", agent, "hello")
	if err != nil {
		t.Fatal(err)
	}
	turn.Model = model
	if err := s.Submit(t.Context(), turn); err != nil {
		t.Fatal(err)
	}
	return turn.ID
}

// withdraw withdraws a turn of session "a".
func withdraw(t testing.TB, s belay.RequeueStore, turn string) {
	t.Helper()
	if err := s.Withdraw(t.Context(), "a", turn); err != nil {
		t.Fatal(err)
	}
}

// openTurn makes the session "a", with one message and an open turn that nobody runs.
func openTurn(t testing.TB, s belay.TurnStore) {
	t.Helper()
	stored, err := s.Open(t.Context(), "a")
	if err == nil {
		err = s.Commit(t.Context(), &belay.Commit{Session: "a", Epoch: stored.Epoch, Messages: []*belay.Message{user(1, "hello")}, State: &belay.SessionState{Turn: &belay.TurnState{ID: "1-x"}}})
	}
	if err == nil {
		err = s.Release(t.Context(), "a", stored.Epoch)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// claimNow claims the turn that is due.
func claimNow(t testing.TB, s belay.RequeueStore) belay.DueTurn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), turnPatience)
	defer cancel()
	due, err := s.Claim(ctx, belay.TurnFilter{})
	if err != nil {
		t.Fatalf("no turn is due: %v", err)
	}
	return due
}

// abortsOf returns the turns that the store should abort.
func abortsOf(t testing.TB, s belay.RequeueStore) []belay.DueTurn {
	t.Helper()
	all, err := s.Aborts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// makeSession makes the session "a".
func makeSession(t testing.TB, s belay.RequeueStore) {
	t.Helper()
	stored, err := s.Open(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Release(t.Context(), "a", stored.Epoch); err != nil {
		t.Fatal(err)
	}
}
