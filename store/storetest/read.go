package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/belay-run/belay"
)

var readRules = []rule{
	{"a missing session is ErrNotFound", func(t testing.TB, s *subject) {
		s.wantMissing(t)
		s.wantMissing(t) // the first Read must not create the session
		s.hold(t, "b")
		s.wantMissing(t)
	}},
	{"a session without messages yields nothing", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		wantNumbers(t, "the messages", s.read(t, "a", 0))
		h.release(t)
		wantNumbers(t, "the messages", s.read(t, "a", 0))
		wantNumbers(t, "the messages", s.read(t, "a", 5))
	}},
	{"reading can begin after any message", func(t testing.TB, s *subject) {
		s.hold(t, "a").say(t, "one", "two", "three", "four")
		for after, want := range map[int64][]int64{-1: {1, 2, 3, 4}, 0: {1, 2, 3, 4}, 1: {2, 3, 4}, 3: {4}, 4: {}, 9: {}} {
			wantNumbers(t, "the messages", s.read(t, "a", after), want...)
		}
	}},
	{"many messages are yielded in order", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		var want []int64
		for i := range int64(12) {
			texts := make([]string, 100)
			h.say(t, texts...)
			for j := range int64(100) {
				want = append(want, i*100+j+1)
			}
		}
		wantNumbers(t, "the messages", s.read(t, "a", 0), want...)
		wantNumbers(t, "the messages", s.read(t, "a", 1150), want[1150:]...)
	}},
	{"reading needs no hold and does not hold the session", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.say(t, "one")
		wantNumbers(t, "the messages", s.read(t, "a", 0), 1) // a held session can be read
		h.say(t, "two")
		h.release(t)
		wantNumbers(t, "the messages", s.read(t, "a", 0), 1, 2) // a released session can be read
		s.hold(t, "a")
	}},
	{"reading yields messages from before a compaction", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.say(t, "one", "two")
		h.compact(t, 0)
		h.say(t, "four")
		wantNumbers(t, "the messages", s.read(t, "a", 0), 1, 2, 3, 4)
		wantNumbers(t, "the messages", s.read(t, "a", 1), 2, 3, 4)
	}},
	{"a reading can be abandoned and started again", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.say(t, "one", "two", "three")
		messages := s.Read(context.Background(), "a", 0)
		for round := range 2 {
			var got []*belay.Message
			for m, err := range messages {
				if err != nil {
					t.Fatalf("Read: %v", err)
				}
				if got = append(got, m); len(got) == 2 {
					break
				}
			}
			wantNumbers(t, "the messages", got, 1, 2)
			if round == 0 {
				h.say(t, "four") // the abandoned Read holds no lock
			}
		}
	}},
	{"a cancelled reading ends with an error", func(t testing.TB, s *subject) {
		s.hold(t, "a").say(t, "one", "two")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		var last error
		for _, err := range s.Read(ctx, "a", 0) {
			last = err
		}
		if last == nil || errors.Is(last, belay.ErrNotFound) {
			t.Errorf("the reading ended with %v, want the error of its context", last)
		}
	}},
}
