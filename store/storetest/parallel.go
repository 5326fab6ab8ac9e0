package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// crowd is the number of goroutines that use a store at the same time.
const crowd = 8

// parallelRules are the rules about concurrent use.
var parallelRules = []rule{
	{"concurrent writes to many sessions lose nothing", func(t testing.TB, s *subject) {
		const rounds = 20
		errs := atOnce(func(i int) error { return s.writeSession(fmt.Sprint("session-", i), rounds) })
		for i, err := range errs {
			if err != nil {
				t.Fatalf("session-%d: %v", i, err)
			}
			name := fmt.Sprint("session-", i)
			var want []*belay.Message
			for n := range int64(rounds) {
				want = append(want, user(2*n+1, name), response(2*n+2, name))
			}
			same(t, name, want, s.read(t, name, 0))
			stored := s.look(t, name)
			same(t, "Calls", judged(want[len(want)-1]), stored.Calls)
			if stored.State.Turns != rounds {
				t.Errorf("%s has %d turns, want %d", name, stored.State.Turns, rounds)
			}
		}
		if s.canList() {
			if got := len(s.runs(t)); got != crowd*rounds {
				t.Errorf("the journal has %d runs, want %d", got, crowd*rounds)
			}
		}
	}},
	{"of many concurrent opens of a session one succeeds", func(t testing.TB, s *subject) {
		for round := range 5 {
			name := fmt.Sprint("round-", round)
			errs := atOnce(func(int) error {
				_, err := s.Open(context.Background(), name)
				return err
			})
			wantOneWinner(t, errs, belay.ErrHeld)
		}
	}},
	{"of many concurrent commits of one message number one is stored", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		for round := range int64(5) {
			errs := atOnce(func(i int) error {
				return h.try(context.Background(), belay.Commit{Messages: []*belay.Message{user(round+1, fmt.Sprint("by ", i))}})
			})
			winner := wantOneWinner(t, errs, belay.ErrConflict)
			if got := s.read(t, "a", round); len(got) != 1 || got[0].Text() != fmt.Sprint("by ", winner) {
				t.Errorf("%d messages were stored, want only that of the successful commit", len(got))
			}
		}
	}},
	{"of many concurrent decisions one is stored, and the others get it returned", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.respond(t, "call-1")
		for round := range 5 {
			asked := fullApproval("a", fmt.Sprint("approval-", round))
			h.commit(t, belay.Commit{Approvals: []belay.Approval{asked}})
			told := make([]belay.Approval, crowd)
			errs := atOnce(func(i int) (err error) {
				told[i], err = s.Decide(context.Background(), decision(asked, fmt.Sprint("person ", i)))
				return err
			})
			winner := wantOneWinner(t, errs, belay.ErrDecided)
			by := decision(asked, fmt.Sprint("person ", winner))
			asked.Decided = &by
			for i := range told {
				same(t, fmt.Sprint("what person ", i, " is told"), asked, told[i])
			}
			approvals := byID(h.reread(t).Approvals)
			same(t, "the approval", []belay.Approval{asked}, approvals[len(approvals)-1:])
		}
	}},
	{"a reader sees a commit completely or not at all", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.say(t, "one", "two", "three")
		written, torn := make(chan error, 1), make(chan struct{})
		go func() { // ends after 30 commits, after an error, or when torn is closed
			var err error
			for i := int64(1); i <= 30 && err == nil; i++ {
				select {
				case <-torn:
					err = errors.New("a reader saw a part of a commit")
				default:
					err = h.try(context.Background(), belay.Commit{Messages: []*belay.Message{user(3*i+1, ""), user(3*i+2, ""), user(3*i+3, "")}})
				}
			}
			written <- err
		}()
		for reading := true; reading; {
			if got := s.read(t, "a", 0); len(got)%3 != 0 {
				t.Errorf("%d messages were read while commits of 3 were stored", len(got))
				close(torn)
				<-written
				return
			}
			select {
			case err := <-written:
				if err != nil {
					t.Fatalf("Commit: %v", err)
				}
				reading = false
			default:
			}
		}
		if got := s.read(t, "a", 0); len(got) != 93 {
			t.Errorf("%d messages are read, want 93", len(got))
		}
	}},
}

// atOnce runs f in many goroutines at the same time and returns their errors.
func atOnce(f func(i int) error) []error {
	errs := make([]error, crowd)
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range crowd {
		all.Go(func() {
			<-begin
			errs[i] = f(i)
		})
	}
	close(begin)
	all.Wait()
	return errs
}

// wantOneWinner asserts that one call succeeded and all others failed with the error want.
// It returns the index of the successful call.
func wantOneWinner(t testing.TB, errs []error, want error) int {
	t.Helper()
	winners := 0
	for _, err := range errs {
		switch {
		case err == nil:
			winners++
		case !errors.Is(err, want):
			t.Errorf("one got the error %q, want %q", err, want)
		}
	}
	if winners != 1 {
		t.Fatalf("%d of %d succeeded, want 1", winners, len(errs))
	}
	return slices.Index(errs, nil)
}

// writeSession makes commits to a session, and releases the session after each of them.
func (s *subject) writeSession(name string, rounds int) error {
	ctx := context.Background()
	for n := range int64(rounds) {
		stored, err := s.Open(ctx, name)
		if err != nil {
			return err
		}
		answer := response(2*n+2, name)
		said := &belay.Commit{Session: name, Epoch: stored.Epoch, Messages: []*belay.Message{user(2*n+1, name)}}
		answered := &belay.Commit{
			Session: name, Epoch: stored.Epoch, Messages: []*belay.Message{answer}, Calls: judged(answer),
			State: &belay.SessionState{Turns: int(n) + 1},
		}
		if _, ok := s.Store.(belay.JournalStore); ok {
			answered.Runs = []hook.Run{sampleRun(fmt.Sprintf("%s-%d", name, n), hook.Completed)}
		}
		if err := errors.Join(s.Commit(ctx, said), s.Commit(ctx, answered), s.Release(ctx, name, stored.Epoch)); err != nil {
			return err
		}
	}
	return nil
}
