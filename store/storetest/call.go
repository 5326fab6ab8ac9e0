package storetest

import (
	"testing"

	"github.com/belay-run/belay"
)

// callRules are the rules about the calls that Open returns.
var callRules = []rule{
	{"every field of a call comes back", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.respond(t)
		call := fullCall(1, 0)
		h.commit(t, belay.Commit{Calls: []belay.CallRecord{call}})
		h.wantCalls(t, call)
	}},
	{"empty fields of a call come back empty", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.respond(t)
		h.commit(t, belay.Commit{Calls: []belay.CallRecord{{Message: 1, ID: "call", State: belay.CallJudged}}})
		h.wantCalls(t, belay.CallRecord{Message: 1, ID: "call", State: belay.CallJudged})
	}},
	{"a call replaces the one of the same message and index", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		calls := judged(h.respond(t, "call-1", "call-2", "call-3"))
		for _, state := range []belay.CallState{belay.CallParked, belay.CallStarted, belay.CallDone} {
			calls[1].State, calls[1].Wait = state, "for "+string(state)
			h.commit(t, belay.Commit{Calls: calls[1:2]})
			h.wantCalls(t, calls...)
		}
		calls[1] = belay.CallRecord{Message: 1, Index: 1, ID: "call-2", State: belay.CallDone} // replaces all fields of the old call
		h.commit(t, belay.Commit{Calls: calls[1:2]})
		h.wantCalls(t, calls...)
	}},
	{"if a commit has two calls with the same index, the later one is stored", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		calls := judged(h.respond(t, "call-1"))
		started, done := calls[0], calls[0]
		started.State, done.State = belay.CallStarted, belay.CallDone
		h.commit(t, belay.Commit{Calls: []belay.CallRecord{started, done}})
		h.wantCalls(t, done)
	}},
	{"calls come back in the order of their index", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		m := response(1, "c", "a", "b", "d", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9")
		calls := judged(m)
		h.commit(t, belay.Commit{Messages: []*belay.Message{m}, Calls: []belay.CallRecord{calls[11], calls[2], calls[0]}})
		h.commit(t, belay.Commit{Calls: []belay.CallRecord{calls[10], calls[1], calls[9], calls[3], calls[4], calls[5], calls[6], calls[7], calls[8]}})
		h.wantCalls(t, calls...)
	}},
	{"only the calls of the last response come back", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		older := judged(h.respond(t, "call-1", "call-2"))
		h.say(t, "results")
		newer := judged(h.respond(t, "call-1"))
		h.wantCalls(t, newer...)
		older[0].State = belay.CallDone
		h.commit(t, belay.Commit{Calls: older[:1]}) // the response of this call is no longer the last one
		h.wantCalls(t, newer...)
	}},
	{"a response without calls has none", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.respond(t, "call-1")
		h.say(t, "results")
		h.respond(t)
		h.wantCalls(t)
	}},
	{"later messages do not hide the calls of a response", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		calls := judged(h.respond(t, "call-1"))
		h.say(t, "a reminder")
		h.wantCalls(t, calls...)
		h.compact(t, 0)
		h.wantCalls(t, calls...)
	}},
	{"the calls of one session are not those of another", func(t testing.TB, s *subject) {
		h, other := s.hold(t, "a"), s.hold(t, "b")
		calls, others := judged(h.respond(t, "call-1")), judged(other.respond(t, "call-1"))
		calls[0].State = belay.CallDone
		h.commit(t, belay.Commit{Calls: calls})
		h.wantCalls(t, calls...)
		other.wantCalls(t, others...)
	}},
}

func (h *hold) wantCalls(t testing.TB, want ...belay.CallRecord) {
	t.Helper()
	same(t, "Calls", want, h.reread(t).Calls)
}

// stateRules are the rules about the state of a session.
var stateRules = []rule{
	{"every field of a state comes back", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		state := fullState()
		h.commit(t, belay.Commit{State: &state})
		same(t, "State", state, h.reread(t).State)
	}},
	{"a commit without a state keeps the stored state", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		state := fullState()
		h.commit(t, belay.Commit{State: &state})
		h.say(t, "one")
		same(t, "State", state, h.reread(t).State)
	}},
	{"a state replaces the whole previous state", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		state := fullState()
		h.commit(t, belay.Commit{State: &state})
		h.commit(t, belay.Commit{State: &belay.SessionState{Turns: 4}})
		same(t, "State", belay.SessionState{Turns: 4}, h.reread(t).State)
		h.commit(t, belay.Commit{State: &belay.SessionState{}})
		same(t, "State", belay.SessionState{}, h.reread(t).State)
	}},
	{"the state of one session is not that of another", func(t testing.TB, s *subject) {
		h, other := s.hold(t, "a"), s.hold(t, "b")
		h.commit(t, belay.Commit{State: &belay.SessionState{Turns: 4}})
		same(t, "State", belay.SessionState{}, other.reread(t).State)
	}},
}
