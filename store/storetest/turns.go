package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belay-run/belay"
)

// TestTurns checks an implementation of [belay.TurnStore] against the contract of the
// interface, except the part that is [belay.Store]. open returns an empty store. Clean up
// with t.Cleanup.
func TestTurns(t *testing.T, open func(t testing.TB) belay.TurnStore) {
	t.Helper()
	for _, r := range turnRules {
		t.Run(r.name, func(t *testing.T) { r.check(t, &turns{open(t), turnPatience}) })
	}
}

// turns is a [belay.TurnStore] under test.
type turns struct {
	belay.TurnStore

	patience time.Duration
}

// turnRule is a requirement for a TurnStore.
type turnRule struct {
	name  string
	check func(t testing.TB, s *turns)
}

// nothing is how long a rule waits to be sure that no turn is due.
const nothing = 50 * time.Millisecond

const turnPatience = 30 * time.Second

// submit submits a turn and fails the test on an error.
func (s *turns) submit(t testing.TB, session, agent, model, text string) belay.QueuedTurn {
	t.Helper()
	turn, err := belay.NewQueuedTurn(session, agent, text)
	turn.Model = model
	if err == nil {
		err = s.Submit(context.Background(), turn)
	}
	if err != nil {
		t.Fatalf("Submit: %v", err)
	}
	return turn
}

// claim claims the next turn and asserts that it belongs to the given session.
func (s *turns) claim(t testing.TB, filter belay.TurnFilter, session string) belay.DueTurn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	due, err := s.Claim(ctx, filter)
	if err != nil || due.Session != session {
		t.Fatalf("Claim gave %+v, %v, want the turn of session %q", due, err, session)
	}
	return due
}

// none asserts that no turn can be claimed.
func (s *turns) none(t testing.TB, filter belay.TurnFilter, why string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), nothing)
	defer cancel()
	if due, err := s.Claim(ctx, filter); err == nil {
		t.Errorf("Claim gave %+v, want nothing: %s", due, why)
	}
}

// settle settles a claim and fails the test on an error.
func (s *turns) settle(t testing.TB, due belay.DueTurn, again time.Time) {
	t.Helper()
	if err := s.Settle(context.Background(), due, again); err != nil {
		t.Fatalf("Settle: %v", err)
	}
}

// queued returns the texts of the queued turns of a session.
func (s *turns) queued(t testing.TB, session string) (texts []string) {
	t.Helper()
	waiting, err := s.Queued(context.Background(), session)
	if err != nil {
		t.Fatalf("Queued: %v", err)
	}
	for _, turn := range waiting {
		texts = append(texts, turn.Text)
	}
	return texts
}

// takeUp opens the session of a queued turn, commits the turn's text as a user message
// with Commit.Queued set to id, and releases the session. It returns the errors of the
// commit and of the release.
func (s *turns) takeUp(t testing.TB, turn belay.QueuedTurn, id string) error {
	t.Helper()
	ctx := context.Background()
	stored, err := s.Open(ctx, turn.Session)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	err = s.Commit(ctx, &belay.Commit{Session: turn.Session, Epoch: stored.Epoch, Queued: id, Messages: []*belay.Message{user(stored.Last+1, turn.Text)}})
	return errors.Join(err, s.Release(ctx, turn.Session, stored.Epoch))
}

// load returns the numbers of turns that wait, are parked, and are claimed.
func (s *turns) load(t testing.TB) (counts [3]int) {
	t.Helper()
	load, err := s.Load(context.Background())
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	counts[0], counts[1] = load.Waiting, load.Parked
	for _, h := range load.Holders {
		counts[2] += len(h.Turns)
	}
	return counts
}

// putOffAtMost is the maximum number of turns in belay.Load.PutOff.
const putOffAtMost = 20

// putOff returns the turns in belay.Load.PutOff and asserts their number.
func (s *turns) putOff(t testing.TB, n int) []belay.DueTurn {
	t.Helper()
	load, err := s.Load(context.Background())
	if err != nil || len(load.PutOff) != n {
		t.Fatalf("Load gave %+v, %v, want %d suspended turns", load.PutOff, err, n)
	}
	return load.PutOff
}

// worker reports whether Load lists this store as a worker.
func (s *turns) worker(t testing.TB) bool {
	t.Helper()
	load, err := s.Load(context.Background())
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return slices.ContainsFunc(load.Holders, func(h belay.HolderLoad) bool { return h.Self && h.Worker })
}

func wantLoad(t testing.TB, s *turns, waiting, parked, claimed int) {
	t.Helper()
	if got := s.load(t); got != [3]int{waiting, parked, claimed} {
		t.Errorf("%v turns wait, are parked and are claimed, want %v", got, [3]int{waiting, parked, claimed})
	}
}

var turnRules = []turnRule{
	{"submitted turns are kept unchanged, in order, and create the session", func(t testing.TB, s *turns) {
		first := s.submit(t, "a", "x", "m", "one")
		s.submit(t, "a", "x", "", "two")
		waiting, err := s.Queued(context.Background(), "a")
		if err != nil || len(waiting) != 2 {
			t.Fatalf("Queued gave %+v, %v, want both", waiting, err)
		}
		got := waiting[0]
		got.Time, first.Time = got.Time.UTC().Truncate(time.Millisecond), first.Time.UTC().Truncate(time.Millisecond)
		if fmt.Sprint(got) != fmt.Sprint(first) {
			t.Errorf("the first is %+v, want %+v", got, first)
		}
		if texts := s.queued(t, "a"); !slices.Equal(texts, []string{"one", "two"}) {
			t.Errorf("these wait: %q", texts)
		}
		for _, err := range s.Read(context.Background(), "a", 0) {
			t.Errorf("Read of a session that has only queued messages: %v, want nothing", err)
		}
	}},
	{"a session is due once, and the session that has been due longest comes first", func(t testing.TB, s *turns) {
		s.submit(t, "b", "x", "m", "one")
		s.submit(t, "a", "y", "", "two")
		s.submit(t, "b", "y", "", "three")
		wantLoad(t, s, 2, 0, 0)
		if due := s.claim(t, belay.TurnFilter{}, "b"); due.Agent != "x" || due.Model != "m" {
			t.Errorf("the turn is %+v, want that of the first message", due)
		}
		s.claim(t, belay.TurnFilter{}, "a")
		s.none(t, belay.TurnFilter{}, "both are claimed")
		wantLoad(t, s, 0, 0, 2)
	}},
	{"of many concurrent claims of a turn one succeeds", func(t testing.TB, s *turns) {
		const n = 8
		ctx, cancel := context.WithTimeout(context.Background(), s.patience)
		defer cancel()
		got := make(chan belay.DueTurn, 2*n)
		for range 2 * n {
			go func() {
				if due, err := s.Claim(ctx, belay.TurnFilter{}); err == nil {
					got <- due
				}
			}()
		}
		seen := make(map[string]bool)
		for i := range n {
			s.submit(t, fmt.Sprint("s", i), "x", "", "go")
		}
		for range n {
			select {
			case due := <-got:
				if seen[due.Session] {
					t.Errorf("session %s was claimed twice", due.Session)
				}
				seen[due.Session] = true
			case <-ctx.Done():
				t.Fatalf("%d of %d turns were claimed", len(seen), n)
			}
		}
	}},
	{"an ended turn is removed from the list", func(t testing.TB, s *turns) {
		turn := s.submit(t, "a", "x", "", "one")
		due := s.claim(t, belay.TurnFilter{}, "a")
		if err := s.takeUp(t, turn, turn.ID); err != nil {
			t.Fatal(err)
		}
		s.settle(t, due, time.Time{})
		wantLoad(t, s, 0, 0, 0)
		s.settle(t, due, time.Time{}) // settling twice is harmless
		s.submit(t, "a", "x", "", "two")
		s.claim(t, belay.TurnFilter{}, "a")
	}},
	{"when a turn has ended, the next queued turn is due, with its own agent", func(t testing.TB, s *turns) {
		turn := s.submit(t, "a", "x", "", "one")
		s.submit(t, "a", "y", "m", "two")
		due := s.claim(t, belay.TurnFilter{}, "a")
		if err := s.takeUp(t, turn, turn.ID); err != nil {
			t.Fatal(err)
		}
		s.settle(t, due, time.Time{})
		if next := s.claim(t, belay.TurnFilter{}, "a"); next.Agent != "y" || next.Model != "m" {
			t.Errorf("the next turn is %+v, want that of the second message", next)
		}
	}},
	{"a commit starts a queued turn once, completely or not at all", func(t testing.TB, s *turns) {
		turn := s.submit(t, "a", "x", "", "one")
		other := s.submit(t, "b", "x", "", "two")
		if err := s.takeUp(t, turn, other.ID); !errors.Is(err, belay.ErrConflict) {
			t.Errorf("taking up another session's turn: %v, want %v", err, belay.ErrConflict)
		}
		if err := s.takeUp(t, turn, turn.ID); err != nil {
			t.Fatal(err)
		}
		if err := s.takeUp(t, turn, turn.ID); !errors.Is(err, belay.ErrConflict) {
			t.Errorf("taking it up twice: %v, want %v", err, belay.ErrConflict)
		}
		if a, b := s.queued(t, "a"), s.queued(t, "b"); len(a) != 0 || len(b) != 1 {
			t.Errorf("these wait: %q and %q, want only that of the other session", a, b)
		}
		n := 0
		for _, err := range s.Read(context.Background(), "a", 0) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != 1 {
			t.Errorf("the session has %d messages, want 1: a rejected commit is not stored", n)
		}
	}},
	{"a suspended turn is due at its time, or when it is woken", func(t testing.TB, s *turns) {
		s.submit(t, "a", "x", "", "one")
		s.settle(t, s.claim(t, belay.TurnFilter{}, "a"), belay.Never)
		s.none(t, belay.TurnFilter{}, "it is suspended")
		wantLoad(t, s, 0, 1, 0)
		if err := s.Wake(context.Background(), "a"); err != nil {
			t.Fatal(err)
		}
		s.settle(t, s.claim(t, belay.TurnFilter{}, "a"), time.Now().Add(10*time.Millisecond))
		s.settle(t, s.claim(t, belay.TurnFilter{}, "a"), time.Now().Add(-time.Second))
		due := s.claim(t, belay.TurnFilter{}, "a")
		if due.Agent != "x" {
			t.Errorf("the turn is %+v, want the suspended one", due)
		}
		if err := s.Wake(context.Background(), "nowhere"); err != nil {
			t.Errorf("Wake of a session that is not queued: %v", err)
		}
		wantLoad(t, s, 0, 0, 1)
	}},
	{"a message after the claim makes the turn due at once", func(t testing.TB, s *turns) {
		s.submit(t, "a", "x", "", "one")
		due := s.claim(t, belay.TurnFilter{}, "a")
		s.submit(t, "a", "y", "", "two")
		s.settle(t, due, belay.Never)
		due = s.claim(t, belay.TurnFilter{}, "a")
		if due.Agent != "x" {
			t.Errorf("the turn is %+v, want the suspended one", due)
		}
		if err := s.Wake(context.Background(), "a"); err != nil {
			t.Fatal(err)
		}
		s.settle(t, due, belay.Never)
		s.claim(t, belay.TurnFilter{}, "a")
	}},
	{"a decision makes the turns of the session and of its parents due", func(t testing.TB, s *turns) {
		ctx := context.Background()
		for _, session := range []string{"a", "a/child"} {
			s.submit(t, session, "x", "", "one")
			s.settle(t, s.claim(t, belay.TurnFilter{}, session), belay.Never)
		}
		s.submit(t, "b", "x", "", "one")
		s.settle(t, s.claim(t, belay.TurnFilter{}, "b"), belay.Never)
		stored, err := s.Open(ctx, "a/child")
		if err != nil {
			t.Fatal(err)
		}
		asked := fullApproval("a/child", "ap-1")
		asked.Expires = time.Time{}
		if err := s.Commit(ctx, &belay.Commit{Session: "a/child", Epoch: stored.Epoch, Approvals: []belay.Approval{asked}}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Decide(ctx, belay.Decision{Approval: asked.ID, Hash: asked.Hash, By: "ann"}); err != nil {
			t.Fatal(err)
		}
		wantLoad(t, s, 2, 1, 0)
	}},
	{"a turn that is put back keeps its place in the order and its age", func(t testing.TB, s *turns) {
		s.submit(t, "a", "x", "", "one")
		s.submit(t, "b", "x", "", "one")
		due := s.claim(t, belay.TurnFilter{}, "a")
		if due.Since.IsZero() || due.Since.After(time.Now()) {
			t.Errorf("the turn is due since %s, want the time when it was submitted", due.Since)
		}
		s.settle(t, due, due.Since)
		again := s.claim(t, belay.TurnFilter{}, "a") // before the turn of b, which became due later
		if !again.Since.Equal(due.Since) {
			t.Errorf("put back, the turn is due since %s, want %s as before", again.Since, due.Since)
		}
		s.submit(t, "a", "x", "", "two") // a later message does not change the turn's position
		s.settle(t, again, due.Since)
		if again = s.claim(t, belay.TurnFilter{}, "a"); !again.Since.Equal(due.Since) {
			t.Errorf("put back with another message, the turn is due since %s, want %s as before", again.Since, due.Since)
		}
	}},
	{"Settle leaves an ended turn on the list if Wake came after the claim", func(t testing.TB, s *turns) {
		turn := s.submit(t, "a", "x", "", "one")
		due := s.claim(t, belay.TurnFilter{}, "a")
		if err := s.takeUp(t, turn, turn.ID); err != nil {
			t.Fatal(err)
		}
		if err := s.Wake(context.Background(), "a"); err != nil {
			t.Fatal(err)
		}
		s.settle(t, due, time.Time{})
		wantLoad(t, s, 1, 0, 0) // Wake made the turn of session a due again
	}},
	{"Load reports a suspended turn with its reason, and not as parked", func(t testing.TB, s *turns) {
		s.submit(t, "a", "x", "m", "one")
		s.submit(t, "b", "x", "", "one")
		due := s.claim(t, belay.TurnFilter{}, "a")
		due.Why = "its model is unavailable"
		later := time.Now().Add(time.Hour)
		s.settle(t, due, later)
		s.settle(t, s.claim(t, belay.TurnFilter{}, "b"), belay.Never) // the turn of b is parked
		wantLoad(t, s, 0, 1, 0)
		put := s.putOff(t, 1)[0]
		if put.Session != "a" || put.Agent != "x" || put.Model != "m" || put.Why != due.Why || put.Again.Sub(later).Abs() > time.Millisecond || put.Since.IsZero() {
			t.Errorf("Load gave %+v, want the turn of session a, due again at %s because %s", put, later, due.Why)
		}
		if err := s.Wake(context.Background(), "a"); err != nil {
			t.Fatal(err)
		}
		s.putOff(t, 0)
		due = s.claim(t, belay.TurnFilter{}, "a")
		s.settle(t, due, later) // this delay has no reason
		s.putOff(t, 0)
		wantLoad(t, s, 0, 2, 0)
	}},
	{"Load reports the oldest of many suspended turns", func(t testing.TB, s *turns) {
		for i := range putOffAtMost + 5 {
			session := fmt.Sprintf("s%02d", i)
			s.submit(t, session, "x", "", "one")
			due := s.claim(t, belay.TurnFilter{}, session)
			due.Why = "because"
			s.settle(t, due, belay.Never)
		}
		if first := s.putOff(t, putOffAtMost)[0]; first.Session != "s00" {
			t.Errorf("the first is %+v, want the oldest", first)
		}
	}},
	{"a store is listed as a worker if it claims turns", func(t testing.TB, s *turns) {
		if s.worker(t) {
			t.Error("a store that has claimed nothing is listed as a worker")
		}
		s.none(t, belay.TurnFilter{}, "nothing was submitted")
		if !s.worker(t) {
			t.Error("a store that waits for turns is not listed as a worker")
		}
	}},
	{"the claim of another holder cannot be settled", func(t testing.TB, s *turns) {
		s.submit(t, "a", "x", "", "one")
		lost := s.claim(t, belay.TurnFilter{}, "a")
		s.settle(t, lost, time.Now())
		s.settle(t, lost, belay.Never) // the store no longer has the claim
		s.claim(t, belay.TurnFilter{}, "a")
	}},
	{"the filter excludes turns", func(t testing.TB, s *turns) {
		s.submit(t, "a", "x", "", "one")
		s.submit(t, "b", "y", "m", "one")
		s.submit(t, "c", "z", "", "one")
		s.none(t, belay.TurnFilter{ExceptAgents: []string{"x", "y", "z"}}, "all agents are excluded")
		s.none(t, belay.TurnFilter{ExceptModels: []string{"m"}, ExceptOwn: []string{"x", "z"}}, "all models are excluded")
		s.claim(t, belay.TurnFilter{ExceptAgents: []string{"x"}}, "b")
		s.claim(t, belay.TurnFilter{ExceptOwn: []string{"x"}, ExceptModels: []string{"m"}}, "c")
		s.claim(t, belay.TurnFilter{}, "a")
	}},
	{"the turn that has been due longest comes first, whichever agent and model it has", func(t testing.TB, s *turns) {
		for i, of := range [][2]string{{"y", "m"}, {"x", ""}, {"y", ""}, {"x", "m"}, {"y", "m"}, {"x", ""}, {"w", "m"}, {"y", ""}} {
			s.submit(t, fmt.Sprint("s", 7-i), of[0], of[1], "go")
		}
		s.claim(t, belay.TurnFilter{ExceptAgents: []string{"y"}}, "s6")
		s.claim(t, belay.TurnFilter{ExceptAgents: []string{"y", "w"}}, "s4")
		s.claim(t, belay.TurnFilter{ExceptModels: []string{"m"}, ExceptOwn: []string{"x"}}, "s5")
		for _, session := range []string{"s7", "s3", "s2", "s1", "s0"} {
			s.claim(t, belay.TurnFilter{}, session)
		}
		s.none(t, belay.TurnFilter{}, "all are claimed")
	}},
	{"Changes reports a change, and a missing session is ErrNotFound", func(t testing.TB, s *turns) {
		ctx, cancel := context.WithTimeout(context.Background(), s.patience)
		defer cancel()
		for _, err := range s.Changes(ctx, "nowhere") {
			if !errors.Is(err, belay.ErrNotFound) {
				t.Errorf("Changes of a session that is not there: %v", err)
			}
		}
		turn := s.submit(t, "a", "x", "", "one")
		told := 0
		for info, err := range s.Changes(ctx, "a") {
			if err != nil {
				t.Fatalf("Changes: %v", err)
			}
			if told++; told == 1 {
				if err := s.takeUp(t, turn, turn.ID); err != nil {
					t.Fatal(err)
				}
			}
			if info.Last == 1 {
				return
			}
		}
		t.Error("Changes did not report a stored message")
	}},
}
