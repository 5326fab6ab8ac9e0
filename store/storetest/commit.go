package storetest

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/belay-run/belay"
)

// commitRules are the rules about what a commit stores and rejects.
var commitRules = []rule{
	{"messages are numbered without a gap", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.say(t, "one")
		h.say(t, "two", "three")
		h.say(t, "four")
		wantNumbers(t, "the messages", s.read(t, "a", 0), 1, 2, 3, 4)
		if stored := h.reread(t); stored.Last != 4 {
			t.Errorf("the last message is %d, want 4", stored.Last)
		}
	}},
	{"an existing message number is ErrConflict", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.say(t, "one", "two")
		for _, seq := range []int64{0, 1, 2} {
			h.refuse(t, belay.ErrConflict, belay.Commit{Messages: []*belay.Message{user(seq, "again")}})
		}
		h.refuse(t, belay.ErrConflict, belay.Commit{Messages: []*belay.Message{user(2, "again"), user(3, "three")}})
		if got := s.read(t, "a", 0); len(got) != 2 || got[1].Text() != "two" {
			t.Errorf("there are %d messages, want the 2 from before", len(got))
		}
	}},
	{"a message that leaves a gap is ErrConflict", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.refuse(t, belay.ErrConflict, belay.Commit{Messages: []*belay.Message{user(2, "two")}})
		h.say(t, "one")
		h.refuse(t, belay.ErrConflict, belay.Commit{Messages: []*belay.Message{user(3, "three")}})
		wantNumbers(t, "the messages", s.read(t, "a", 0), 1)
	}},
	{"a gap within a commit is ErrConflict", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.refuse(t, belay.ErrConflict, belay.Commit{Messages: []*belay.Message{user(1, "one"), user(3, "three")}})
		h.refuse(t, belay.ErrConflict, belay.Commit{Messages: []*belay.Message{user(1, "one"), user(1, "one")}})
		wantNumbers(t, "the messages", s.read(t, "a", 0))
	}},
	{"a call of a missing message is ErrConflict", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.say(t, "one")
		h.refuse(t, belay.ErrConflict, belay.Commit{Calls: []belay.CallRecord{{Message: 2, ID: "call", State: belay.CallJudged}}})
		h.refuse(t, belay.ErrConflict, belay.Commit{Calls: []belay.CallRecord{{Message: 0, ID: "call", State: belay.CallJudged}}})
	}},
	{"an amended message replaces the last one", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.say(t, "one")
		first := h.respond(t, "c1")
		before := s.read(t, "a", 0)
		amended := response(2, "c1")
		amended.Calls()[0].Final, amended.Calls()[0].RewrittenBy = json.RawMessage(`{"path":"b"}`), []string{"rewriter"}
		h.commit(t, belay.Commit{Amended: amended, Messages: []*belay.Message{user(3, "three")}})
		for what, got := range map[string][]*belay.Message{"what is read": s.read(t, "a", 0), "what is opened": h.reread(t).Messages} {
			wantNumbers(t, what, got, 1, 2, 3)
			if len(got) == 3 && !slices.Equal(got[1].Calls()[0].RewrittenBy, []string{"rewriter"}) {
				t.Errorf("%s has the message before it was amended", what)
			}
		}
		if before[1].Calls()[0].RewrittenBy != nil || first.Calls()[0].RewrittenBy != nil {
			t.Error("a message that was read before is changed")
		}
	}},
	{"amending a message other than the last is ErrConflict", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.refuse(t, belay.ErrConflict, belay.Commit{Amended: response(0, "c1")})
		h.refuse(t, belay.ErrConflict, belay.Commit{Amended: response(1, "c1")})
		h.say(t, "one", "two")
		before := h.picture(t)
		h.refuse(t, belay.ErrConflict, belay.Commit{Amended: response(1, "c1")})
		h.refuse(t, belay.ErrConflict, belay.Commit{Amended: response(3, "c1")})
		h.refuse(t, belay.ErrConflict, belay.Commit{Amended: response(3, "c1"), Messages: []*belay.Message{user(3, "three")}})
		h.wantPicture(t, before)
	}},
	{"an empty commit is harmless", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.say(t, "one")
		before := h.picture(t)
		h.commit(t, belay.Commit{})
		h.wantPicture(t, before)
	}},
	{"a commit stores everything at once", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		m, state, asked := response(1, "call-1"), fullState(), fullApproval("a", "approval-1")
		h.commit(t, belay.Commit{Messages: []*belay.Message{m}, Calls: judged(m), Approvals: []belay.Approval{asked}, State: &state})
		epoch := h.epoch
		stored := h.reread(t)
		want := belay.Stored{Epoch: stored.Epoch, Messages: []*belay.Message{m}, Last: 1, Calls: judged(m), Approvals: []belay.Approval{asked}, State: state}
		same(t, "Stored", want, *stored)
		if stored.Epoch <= epoch {
			t.Errorf("the epoch is %d after %d", stored.Epoch, epoch)
		}
	}},
	{"changes that a caller makes to its commit afterwards have no effect", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		m, state := response(1, "call-1"), fullState()
		by := decision(fullApproval("a", "approval-1"), "ann")
		asked := fullApproval("a", "approval-1")
		asked.Decided = &by
		c := belay.Commit{
			Session: "a", Epoch: h.epoch, Messages: []*belay.Message{m}, Calls: judged(m), Approvals: []belay.Approval{asked}, State: &state,
		}
		if err := s.Commit(context.Background(), &c); err != nil {
			t.Fatalf("Commit: %v", err)
		}
		c.Messages[0], c.Calls[0], c.Approvals[0] = user(1, "other"), belay.CallRecord{}, belay.Approval{}
		by.By, state.Turns, state.Turn.Step, state.ForkedFrom.Seq = "other", 99, 99, 99
		state.Turn, state.Pending = nil, nil
		wantState, wantAsked, wantBy := fullState(), fullApproval("a", "approval-1"), decision(asked, "ann")
		wantAsked.Decided = &wantBy
		stored := h.reread(t)
		same(t, "Messages", []*belay.Message{m}, stored.Messages)
		same(t, "Calls", judged(m), stored.Calls)
		same(t, "Approvals", []belay.Approval{wantAsked}, stored.Approvals)
		same(t, "State", wantState, stored.State)
	}},
	{"changes that a caller makes to an opened session have no effect", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		m, state, asked := response(1, "call-1"), fullState(), fullApproval("a", "approval-1")
		h.commit(t, belay.Commit{Messages: []*belay.Message{m}, Calls: judged(m), Approvals: []belay.Approval{asked}, State: &state})
		first := h.reread(t)
		if len(first.Calls) != 1 || len(first.Approvals) != 1 || first.State.Turn == nil || first.State.ForkedFrom == nil {
			t.Fatalf("Open gave %+v, want a call, an approval and a state with a turn", first)
		}
		first.Messages = append(first.Messages, user(2, "only mine"))
		first.Calls[0].State, first.Approvals[0].Reason = belay.CallDone, "other"
		first.State.Turns, first.State.Turn.Step, first.State.ForkedFrom.Seq = 99, 99, 99
		stored := h.reread(t)
		same(t, "Messages", []*belay.Message{m}, stored.Messages)
		same(t, "Calls", judged(m), stored.Calls)
		same(t, "Approvals", []belay.Approval{asked}, stored.Approvals)
		same(t, "State", fullState(), stored.State)
	}},
	{"a cancelled commit is stored completely or not at all", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		first, second := response(1, "call-1"), user(2, "two")
		state := belay.SessionState{Turns: 1}
		err := h.try(ctx, belay.Commit{Messages: []*belay.Message{first, second}, Calls: judged(first), State: &state})
		stored := h.reread(t)
		parts := [4]int{len(stored.Messages), int(stored.Last), len(stored.Calls), stored.State.Turns}
		switch parts {
		case [4]int{2, 2, 1, 1}:
		case [4]int{}:
			if err == nil {
				t.Error("Commit gave no error and stored nothing")
			}
		default:
			t.Errorf("Commit gave %v and stored a part: messages, last, calls and turns are %d, want [2 2 1 1] or zeros", err, parts)
		}
	}},
}
