package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// holdRules are the rules about who can open a session.
var holdRules = []rule{
	{"a new session is empty", func(t testing.TB, s *subject) {
		_, stored := s.take(t, "a")
		same(t, "Stored", belay.Stored{Epoch: stored.Epoch}, *stored)
	}},
	{"opening a held session is ErrHeld", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		s.wantHeld(t)
		h.say(t, "the hold is still valid")
		s.hold(t, "b") // other sessions can still be opened
	}},
	{"a released session can be opened", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.say(t, "one")
		h.release(t)
		if _, stored := s.take(t, "a"); stored.Last != 1 {
			t.Errorf("the last message is %d, want 1", stored.Last)
		}
	}},
	{"each hold has a higher epoch than the previous one", func(t testing.TB, s *subject) {
		before := int64(0)
		for range 3 {
			h := s.hold(t, "a")
			if h.epoch <= before {
				t.Errorf("the epoch is %d after %d", h.epoch, before)
			}
			before = h.epoch
			h.release(t)
		}
	}},
	{"a release with the wrong epoch is harmless", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		for _, epoch := range []int64{0, -1, h.epoch - 1, h.epoch + 1} {
			if err := s.Release(context.Background(), "a", epoch); err != nil {
				t.Errorf("Release with epoch %d in place of %d: %v", epoch, h.epoch, err)
			}
		}
		s.wantHeld(t)
		h.say(t, "the hold is still valid")
	}},
	{"a second release does not release the hold of another holder", func(t testing.TB, s *subject) {
		former := s.hold(t, "a")
		former.release(t)
		former.release(t)
		h := s.hold(t, "a")
		former.release(t)
		s.wantHeld(t)
		h.say(t, "the hold is still valid")
	}},
	{"releasing a missing session is harmless", func(t testing.TB, s *subject) {
		if err := s.Release(context.Background(), "a", 1); err != nil {
			t.Errorf("Release: %v", err)
		}
		s.wantMissing(t)
	}},
	{"sessions with similar names are separate", func(t testing.TB, s *subject) {
		names := []string{"a", "A", " a", "a ", "á", "a%", "a_", "%", "a/b", "a.b", foreign, strings.Repeat("n", 256)}
		for _, name := range names {
			s.hold(t, name).say(t, "this is "+name)
		}
		for _, name := range names {
			if got := s.read(t, name, 0); len(got) != 1 || got[0].Text() != "this is "+name {
				t.Errorf("session %q has %d messages that are not its own", name, len(got))
			}
		}
	}},
}

// fenceRules are the rules about who can commit.
var fenceRules = []rule{
	{"a commit with another epoch is ErrFenced", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		for _, epoch := range []int64{0, -1, h.epoch - 1, h.epoch + 1} {
			other := *h
			other.epoch = epoch
			other.refuse(t, belay.ErrFenced, belay.Commit{Messages: []*belay.Message{user(1, "fenced")}})
		}
		h.say(t, "one")
	}},
	{"a commit to a session that nobody opened is ErrFenced", func(t testing.TB, s *subject) {
		h := &hold{s: s, session: "a", epoch: 1}
		h.refuse(t, belay.ErrFenced, belay.Commit{Messages: []*belay.Message{user(1, "fenced")}})
		s.wantMissing(t)
	}},
	{"a commit after the release is ErrFenced", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.release(t)
		h.refuse(t, belay.ErrFenced, belay.Commit{Messages: []*belay.Message{user(1, "fenced")}})
	}},
	{"a commit of a former holder is ErrFenced", func(t testing.TB, s *subject) {
		former := s.hold(t, "a")
		former.release(t)
		h := s.hold(t, "a")
		former.refuse(t, belay.ErrFenced, belay.Commit{Messages: []*belay.Message{user(1, "fenced")}})
		h.say(t, "one")
	}},
	{"a commit without messages is fenced too", func(t testing.TB, s *subject) {
		former := s.hold(t, "a")
		former.release(t)
		h := s.hold(t, "a")
		former.refuse(t, belay.ErrFenced, belay.Commit{State: &belay.SessionState{Turns: 9}})
		former.refuse(t, belay.ErrFenced, belay.Commit{})
		if got := h.reread(t).State.Turns; got != 0 {
			t.Errorf("the fenced commit wrote its state: %d turns, want 0", got)
		}
	}},
	{"a takeover has a higher epoch and fences the former holder", func(t testing.TB, s *subject) {
		former := s.hold(t, "a")
		former.say(t, "one")
		s.expire(t, "a")
		h := s.hold(t, "a")
		if h.epoch <= former.epoch {
			t.Errorf("the epoch is %d after %d", h.epoch, former.epoch)
		}
		former.refuse(t, belay.ErrFenced, belay.Commit{Messages: []*belay.Message{user(2, "fenced")}})
		former.release(t)
		s.wantHeld(t)
		h.say(t, "two")
		wantNumbers(t, "the messages", s.read(t, "a", 0), 1, 2)
	}},
}

// expire makes the holder of a session count as gone. It skips the rule if Options.Expire
// is not set.
func (s *subject) expire(t testing.TB, session string) {
	t.Helper()
	if s.opts.Expire == nil {
		t.Skip("storetest: Options.Expire is not set")
	}
	s.opts.Expire(t, s.Store, session)
}

// wantHeld asserts that the session "a" cannot be opened.
func (s *subject) wantHeld(t testing.TB) {
	t.Helper()
	if _, err := s.Open(context.Background(), "a"); !errors.Is(err, belay.ErrHeld) {
		t.Errorf("Open gave the error %v, want one that is %q", err, belay.ErrHeld)
	}
}

// wantMissing asserts that the session "a" does not exist.
func (s *subject) wantMissing(t testing.TB) {
	t.Helper()
	yielded := 0
	for m, err := range s.Read(context.Background(), "a", 0) {
		yielded++
		if m != nil || !errors.Is(err, belay.ErrNotFound) {
			t.Errorf("Read yields (%v, %v), want an error that is %q", m, err, belay.ErrNotFound)
		}
	}
	if yielded != 1 {
		t.Errorf("Read yields %d times, want an error that is %q, once", yielded, belay.ErrNotFound)
	}
}
