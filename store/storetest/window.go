package storetest

import (
	"slices"
	"testing"

	"github.com/belay-run/belay"
)

// windowRules are the rules about the messages that Open returns: those that the model
// sees, in the order of belay.Visible.
var windowRules = []rule{
	{"without a compaction Open returns all messages", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		for range 50 {
			h.say(t, "text", "text")
		}
		if stored := h.reread(t); len(stored.Messages) != 100 || stored.Last != 100 {
			t.Errorf("%d messages are opened, the last is %d; want 100", len(stored.Messages), stored.Last)
		}
	}},
	{"a compaction that keeps nothing is the first message", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.say(t, "one", "two")
		h.compact(t, 0)
		h.wantWindow(t, 3)
		h.say(t, "four")
		h.wantWindow(t, 3, 4)
	}},
	{"the messages that a compaction keeps come after it", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.say(t, "one", "two", "three")
		h.compact(t, 2)
		h.wantWindow(t, 4, 2, 3)
		h.say(t, "five")
		h.wantWindow(t, 4, 2, 3, 5)
	}},
	{"the last compaction counts", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.say(t, "one", "two")
		h.compact(t, 1)
		h.say(t, "four", "five")
		h.compact(t, 5)
		h.say(t, "seven")
		h.wantWindow(t, 6, 5, 7)
		h.compact(t, 2) // replaces the earlier compactions
		h.wantWindow(t, 8, 2, 4, 5, 7)
		h.say(t, "nine")
		h.wantWindow(t, 8, 2, 4, 5, 7, 9)
	}},
	{"a compaction within a commit counts", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.commit(t, belay.Commit{Messages: []*belay.Message{user(1, "one"), user(2, "two"), summary(3, 2), user(4, "four")}})
		h.wantWindow(t, 3, 2, 4)
	}},
	{"a compaction in one session does not affect another", func(t testing.TB, s *subject) {
		other := s.hold(t, "b")
		other.say(t, "one", "two", "three")
		h := s.hold(t, "a")
		h.say(t, "one")
		h.compact(t, 0)
		other.wantWindow(t, 1, 2, 3)
	}},
}

// compact commits a compaction that keeps the messages from number keep on.
func (h *hold) compact(t testing.TB, keep int64) {
	t.Helper()
	h.commit(t, belay.Commit{Messages: []*belay.Message{summary(h.last+1, keep)}})
}

// wantWindow asserts the numbers of the messages that Open returns. It also asserts that
// Read returns all messages.
func (h *hold) wantWindow(t testing.TB, want ...int64) {
	t.Helper()
	stored := h.reread(t)
	wantNumbers(t, "the messages that Open returns", stored.Messages, want...)
	if stored.Last != slices.Max(want) {
		t.Errorf("the last message is %d, want %d", stored.Last, slices.Max(want))
	}
	if all := h.s.read(t, h.session, 0); int64(len(all)) != stored.Last {
		t.Errorf("%d messages are read, want all %d", len(all), stored.Last)
	}
}
