package storetest

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/belay-run/belay"
)

// sessionListRules are the rules about listings of sessions and their order.
var sessionListRules = []rule{
	{"an empty store lists nothing", func(t testing.TB, s *subject) {
		s.wantSessions(t, belay.SessionFilter{})
		s.wantSessions(t, belay.SessionFilter{Limit: 5})
		s.wantInbox(t, belay.ApprovalFilter{})
	}},
	{"the last changed session is listed first", func(t testing.TB, s *subject) {
		holds := s.changed(t, "a", "b", "c")
		s.wantSessions(t, belay.SessionFilter{}, "c", "b", "a")
		holds["a"].say(t, "one")
		s.wantSessions(t, belay.SessionFilter{}, "a", "c", "b")
		tick()
		holds["b"].commit(t, belay.Commit{}) // an empty commit is also a change
		s.wantSessions(t, belay.SessionFilter{}, "b", "a", "c")
		tick()
		holds["c"].reread(t) // opening is also a change
		s.wantSessions(t, belay.SessionFilter{}, "c", "b", "a")
	}},
	{"many sessions are listed in order", func(t testing.TB, s *subject) {
		var want []string
		for i := range 130 {
			want = append(want, fmt.Sprint("session-", i))
		}
		s.changed(t, want...)
		slices.Reverse(want)
		s.wantSessions(t, belay.SessionFilter{}, want...)
	}},
	{"sessions are selected by the exact prefix of their ids", func(t testing.TB, s *subject) {
		s.changed(t, "a", "A", "a%", "ab", "a_", "á", "b", "ba", `a\`, "\U0010FFFF", "\U0010FFFFx", "\uD7FFx", "\uE000")
		for prefix, want := range map[string][]string{
			"a": {`a\`, "a_", "ab", "a%", "a"}, "A": {"A"}, "a%": {"a%"}, "a_": {"a_"}, "ab": {"ab"}, "á": {"á"}, `a\`: {`a\`}, "%": nil, "_": nil, "abc": nil,
			"\U0010FFFF": {"\U0010FFFFx", "\U0010FFFF"}, "\uD7FF": {"\uD7FFx"}, "\uE000": {"\uE000"},
		} {
			s.wantSessions(t, belay.SessionFilter{Prefix: prefix}, want...)
		}
	}},
	{"one session is found by its exact id", func(t testing.TB, s *subject) {
		s.changed(t, "a", "A", "a/b", "ab", "a%")
		for id, want := range map[string][]string{"a": {"a"}, "A": {"A"}, "a/b": {"a/b"}, "a%": {"a%"}, "b": nil, "a_": nil} {
			s.wantSessions(t, belay.SessionFilter{ID: id}, want...)
		}
		s.wantSessions(t, belay.SessionFilter{ID: "a", Open: true})
		s.wantSessions(t, belay.SessionFilter{ID: "ab", Prefix: "a"}, "ab")
		s.wantSessions(t, belay.SessionFilter{ID: "ab", Prefix: "b"})
	}},
	{"a filter selects sessions that changed at a time or later", func(t testing.TB, s *subject) {
		s.changed(t, "a", "b", "c")
		at := s.info(t, "b").Changed
		s.wantSessions(t, belay.SessionFilter{Since: at}, "c", "b")
		s.wantSessions(t, belay.SessionFilter{Since: at, Limit: 1}, "c")
		s.wantSessions(t, belay.SessionFilter{Since: s.info(t, "c").Changed.Add(time.Millisecond)})
		s.wantSessions(t, belay.SessionFilter{Since: at.Add(-time.Hour), Prefix: "a"}, "a")
	}},
	{"a filter selects sessions with an open turn, including parked ones", func(t testing.TB, s *subject) {
		s.underway(t)
		s.wantSessions(t, belay.SessionFilter{Open: true}, "parked", "busy")
	}},
	{"a listing of sessions stops at its limit", func(t testing.TB, s *subject) {
		s.changed(t, "a", "b", "c")
		s.wantSessions(t, belay.SessionFilter{Limit: 1}, "c")
		s.wantSessions(t, belay.SessionFilter{Limit: 2}, "c", "b")
		s.wantSessions(t, belay.SessionFilter{Limit: 4}, "c", "b", "a")
	}},
	{"a session is listed if all parts of the filter match", func(t testing.TB, s *subject) {
		s.underway(t)
		s.wantSessions(t, belay.SessionFilter{Open: true, Limit: 1}, "parked")
		s.wantSessions(t, belay.SessionFilter{Open: true, Prefix: "b"}, "busy")
		s.wantSessions(t, belay.SessionFilter{Open: true, Prefix: "b", Limit: 1}, "busy") // the limit counts only matching sessions
		s.wantSessions(t, belay.SessionFilter{Open: true, Prefix: "d"})
	}},
}

// sessionInfoRules are the rules about the fields of a listed session.
var sessionInfoRules = []rule{
	{"a listing has the times when a session was created and changed", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		made := s.info(t, "a")
		if made.Created.IsZero() || !made.Changed.Equal(made.Created) {
			t.Errorf("it was created at %v and changed at %v, want the same time", made.Created, made.Changed)
		}
		tick()
		h.say(t, "one")
		said := s.info(t, "a")
		tick()
		h.reread(t)
		opened := s.info(t, "a")
		for i, info := range []belay.SessionInfo{said, opened} {
			if before := []belay.SessionInfo{made, said}[i]; !info.Created.Equal(made.Created) || !info.Changed.After(before.Changed) {
				t.Errorf("it was created at %v and changed at %v, want %v and a time after %v", info.Created, info.Changed, made.Created, before.Changed)
			}
		}
	}},
	{"reading, deciding, releasing and rejected commits do not change a session's time", func(t testing.TB, s *subject) {
		h, asked := s.asked(t)
		tick()
		s.hold(t, "b")
		before := s.info(t, "a")
		tick()
		s.read(t, "a", 0)
		s.decide(t, decision(asked, "ann"))
		s.wantHeld(t)
		h.refuse(t, belay.ErrConflict, belay.Commit{Messages: []*belay.Message{user(9, "out of turn")}})
		h.release(t)
		h.refuse(t, belay.ErrFenced, belay.Commit{})
		if after := s.info(t, "a"); !after.Changed.Equal(before.Changed) {
			t.Errorf("it was changed at %v, want %v as before", after.Changed, before.Changed)
		}
		s.wantSessions(t, belay.SessionFilter{}, "b", "a")
	}},
	{"a listing has the number of the last message", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		s.hold(t, "b").say(t, "one")
		for _, step := range []struct {
			say  func()
			want int64
		}{{func() {}, 0}, {func() { h.say(t, "one", "two") }, 2}, {func() { h.compact(t, 0) }, 3}, {func() { h.say(t, "four") }, 4}} {
			step.say()
			if got := s.info(t, "a").Last; got != step.want {
				t.Errorf("the last message is %d, want %d", got, step.want)
			}
		}
	}},
	{"a listing reports whether a session is held", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		s.hold(t, "b").release(t)
		for _, want := range []bool{true, false, true} {
			if got := s.info(t, "a").Held; got != want {
				t.Errorf("held is %t, want %t", got, want)
			}
			if want {
				h.release(t)
			} else {
				h = s.hold(t, "a")
			}
		}
		if s.info(t, "b").Held {
			t.Error("a released session is listed as held")
		}
	}},
	{"a session whose holder has ended is not listed as held", func(t testing.TB, s *subject) {
		s.hold(t, "a")
		s.expire(t, "a")
		if s.info(t, "a").Held {
			t.Error("it is listed as held, but it can be opened")
		}
		s.hold(t, "a")
		if !s.info(t, "a").Held {
			t.Error("it is not listed as held, but was taken over")
		}
	}},
	{"a listing has every field of a state", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		same(t, "State", belay.SessionState{}, s.info(t, "a").State)
		state := fullState()
		h.commit(t, belay.Commit{State: &state})
		same(t, "State", state, s.info(t, "a").State)
		h.release(t)
		same(t, "State", state, s.info(t, "a").State)
	}},
	{"changing a listed state does not change the store", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		state := fullState()
		h.commit(t, belay.Commit{State: &state})
		listed := s.info(t, "a").State
		later := fullState()
		later.Turn.Step, later.ForkedFrom.Seq = 8, 8
		h.commit(t, belay.Commit{State: &later})
		same(t, "the earlier listing", state, listed)
		listed = s.info(t, "a").State
		listed.Turn.Step, listed.ForkedFrom.Seq = 9, 9
		_ = append(listed.Pending, belay.PendingReminder{Kind: "runtime"})
		same(t, "State", later, s.info(t, "a").State)
		same(t, "State", later, h.reread(t).State)
	}},
}

// listingRules are the rules about changes during a listing.
var listingRules = []rule{
	{"a listing of sessions can be abandoned and started again", func(t testing.TB, s *subject) {
		holds := s.changed(t, "a", "b", "c")
		sessions := s.listed(t).Sessions(context.Background(), belay.SessionFilter{})
		for i, want := range [][]string{{"c", "b"}, {"a", "c"}} {
			wantIDs(t, "the sessions", pull(t, sessions, 2), sessionID, want...)
			if i == 0 {
				tick()
				holds["a"].say(t, "one") // the abandoned listing holds no lock, and the next listing sees the change
			}
		}
	}},
	{"a session can be opened and committed to during a listing", func(t testing.TB, s *subject) {
		for _, h := range s.changed(t, "a", "b", "c") {
			h.release(t)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for info, err := range s.listed(t).Sessions(ctx, belay.SessionFilter{}) {
			if err != nil {
				t.Fatalf("Sessions: %v", err)
			}
			stored, err := s.Open(ctx, info.ID)
			if err != nil {
				t.Fatalf("Open(%q) while sessions are listed: %v", info.ID, err)
			}
			if err := s.Commit(ctx, &belay.Commit{Session: info.ID, Epoch: stored.Epoch, Messages: []*belay.Message{user(1, "one")}}); err != nil {
				t.Fatalf("Commit to %q while sessions are listed: %v", info.ID, err)
			}
		}
		for _, session := range []string{"a", "b", "c"} {
			wantNumbers(t, "the messages", s.read(t, session, 0), 1)
		}
	}},
	{"a cancelled listing of sessions ends with an error", func(t testing.TB, s *subject) {
		s.changed(t, "a", "b")
		wantCancelled(t, func(ctx context.Context) iter.Seq2[belay.SessionInfo, error] {
			return s.listed(t).Sessions(ctx, belay.SessionFilter{})
		})
	}},
}

// listed returns the store as a belay.ListStore, or skips the rule.
func (s *subject) listed(t testing.TB) belay.ListStore {
	t.Helper()
	ls, ok := s.Store.(belay.ListStore)
	if !ok {
		t.Skip("storetest: the store is not a belay.ListStore")
	}
	return ls
}

// changed opens sessions, each at a different time. After it returns, the next change has
// another time, too.
func (s *subject) changed(t testing.TB, sessions ...string) map[string]*hold {
	t.Helper()
	s.listed(t)
	holds := make(map[string]*hold)
	for _, session := range sessions {
		holds[session] = s.hold(t, session)
		tick()
	}
	return holds
}

// underway makes four sessions. Two of them have an open turn.
func (s *subject) underway(t testing.TB) {
	t.Helper()
	holds := s.changed(t, "bare", "done", "busy", "parked")
	for _, step := range []struct {
		session string
		state   belay.SessionState
	}{
		{"busy", belay.SessionState{Turns: 1, Turn: &belay.TurnState{ID: "turn-1"}}},
		{"parked", belay.SessionState{Turns: 1, Turn: &belay.TurnState{ID: "turn-1", Parked: true}}},
		{"done", belay.SessionState{Turns: 1, Turn: &belay.TurnState{ID: "turn-1"}}},
		{"done", belay.SessionState{Turns: 1, Last: belay.EndTurn}},
	} {
		holds[step.session].commit(t, belay.Commit{State: &step.state})
		tick()
	}
}

// info returns a session as it is listed.
func (s *subject) info(t testing.TB, session string) belay.SessionInfo {
	t.Helper()
	for _, info := range pull(t, s.listed(t).Sessions(context.Background(), belay.SessionFilter{}), 0) {
		if info.ID == session {
			return info
		}
	}
	t.Fatalf("the session %q is not listed", session)
	return belay.SessionInfo{}
}

// wantSessions asserts the ids of the listed sessions.
func (s *subject) wantSessions(t testing.TB, filter belay.SessionFilter, want ...string) {
	t.Helper()
	got := pull(t, s.listed(t).Sessions(context.Background(), filter), 0)
	wantIDs(t, fmt.Sprintf("the sessions of %+v", filter), got, sessionID, want...)
}

func sessionID(i belay.SessionInfo) string { return i.ID }

// wantIDs asserts the ids of a listing, in order.
func wantIDs[T any](t testing.TB, what string, listed []T, id func(T) string, want ...string) {
	t.Helper()
	got := make([]string, len(listed))
	for i := range listed {
		got[i] = id(listed[i])
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s are %q, want %q", what, got, want)
	}
}

// pull reads up to most elements, or all if most is 0. It fails the test on an error.
func pull[T any](t testing.TB, listing iter.Seq2[T, error], most int) []T {
	t.Helper()
	var all []T
	for v, err := range listing {
		if err != nil {
			t.Fatalf("the listing ends with %v", err)
		}
		if all = append(all, v); len(all) == most {
			break
		}
	}
	return all
}

// wantCancelled asserts that a listing ends with an error if its context has ended.
func wantCancelled[T any](t testing.TB, list func(context.Context) iter.Seq2[T, error]) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var last error
	for _, err := range list(ctx) {
		last = err
	}
	if last == nil {
		t.Error("the listing ended without an error, want that of its context")
	}
}

// tick waits until the time has changed, even for a store that rounds to microseconds.
func tick() {
	for start := time.Now(); time.Since(start) <= 2*rounding; {
		runtime.Gosched()
	}
}
