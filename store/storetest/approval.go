package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
)

// approvalRules are the rules about the approvals of a commit.
var approvalRules = []rule{
	{"every field of an approval comes back", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.respond(t, "call-1", "call-2")
		pending, decided := fullApproval("a", "approval-1"), fullApproval("a", "approval-2")
		by := decision(decided, foreign)
		decided.Decided, decided.Call = &by, "call-2"
		h.commit(t, belay.Commit{Approvals: []belay.Approval{pending, decided}})
		h.wantApprovals(t, pending, decided)
	}},
	{"empty fields of an approval come back empty", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.respond(t, "call-1")
		bare := belay.Approval{ID: "approval-1", Session: "a", Call: "call-1", Asked: noon}
		h.commit(t, belay.Commit{Approvals: []belay.Approval{bare}})
		h.wantApprovals(t, bare)
	}},
	{"a commit replaces a pending approval", func(t testing.TB, s *subject) {
		h, asked := s.asked(t)
		asked.Reason, asked.Expires = "another", time.Time{}
		h.commit(t, belay.Commit{Approvals: []belay.Approval{asked}})
		h.wantApprovals(t, asked)
		by := decision(asked, "cancel")
		asked.Decided = &by
		h.commit(t, belay.Commit{Approvals: []belay.Approval{asked}})
		h.wantApprovals(t, asked)
	}},
	{"a commit does not change a decided approval, and is stored", func(t testing.TB, s *subject) {
		h, asked := s.asked(t)
		by := decision(asked, "ann")
		s.decide(t, by)
		late := asked
		other := decision(asked, "cancel")
		late.Reason, late.Decided = "another", &other
		h.commit(t, belay.Commit{Approvals: []belay.Approval{late}, State: &belay.SessionState{Turns: 5}})
		late.Decided = nil
		h.commit(t, belay.Commit{Approvals: []belay.Approval{late}})
		asked.Decided = &by
		h.wantApprovals(t, asked)
		if got := h.reread(t).State.Turns; got != 5 {
			t.Errorf("the rest of the commit was not stored: %d turns, want 5", got)
		}
	}},
	{"Open returns only the approvals of the last response", func(t testing.TB, s *subject) {
		h, _ := s.asked(t)
		h.say(t, "results")
		h.respond(t, "call-1") // the same call id, but in another message
		h.wantApprovals(t)
		newer := fullApproval("a", "approval-2")
		h.commit(t, belay.Commit{Approvals: []belay.Approval{newer}})
		h.wantApprovals(t, newer)
	}},
	{"a commit does not replace an approval of another session", func(t testing.TB, s *subject) {
		h, asked := s.asked(t)
		other := s.hold(t, "b")
		other.respond(t, "call-1")
		foreignOne := asked
		foreignOne.Session, foreignOne.Hash = "b", "sha256:other"
		_ = other.try(context.Background(), belay.Commit{Approvals: []belay.Approval{foreignOne}})
		h.wantApprovals(t, asked)
		s.decide(t, decision(asked, "ann"))
	}},
}

var decideRules = []rule{
	{"a decision is stored and returned with every field", func(t testing.TB, s *subject) {
		h, asked := s.asked(t)
		h.release(t)
		by := decision(asked, foreign)
		asked.Decided = &by
		same(t, "what Decide returns", asked, s.decide(t, by))
		same(t, "Approvals", []belay.Approval{asked}, s.look(t, "a").Approvals)
	}},
	{"a denial is a decision", func(t testing.TB, s *subject) {
		h, asked := s.asked(t)
		by := refusal(asked, "ann")
		by.Reason = ""
		s.decide(t, by)
		asked.Decided = &by
		h.wantApprovals(t, asked)
	}},
	{"an approval of a held session can be decided, and the session stays held", func(t testing.TB, s *subject) {
		h, asked := s.asked(t)
		s.decide(t, decision(asked, "ann"))
		s.wantHeld(t)
		h.say(t, "the hold is still valid")
	}},
	{"a missing approval is ErrNotFound", func(t testing.TB, s *subject) {
		_, asked := s.asked(t)
		other := decision(asked, "ann")
		other.Approval = "approval-9"
		s.refuseDecision(t, belay.ErrNotFound, other)
	}},
	{"a decision with the hash of another input is ErrWrongHash, and the approval stays pending", func(t testing.TB, s *subject) {
		h, asked := s.asked(t)
		wrong := decision(asked, "ann")
		for _, hash := range []string{"", "sha256:other", asked.Hash + " ", asked.Hash[:len(asked.Hash)-1]} {
			wrong.Hash = hash
			same(t, "the returned approval", asked, s.refuseDecision(t, belay.ErrWrongHash, wrong))
		}
		h.wantApprovals(t, asked)
		s.decide(t, decision(asked, "ann"))
	}},
	{"a scope comes back unchanged", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.respond(t, "call-1")
		var want []belay.Approval
		for i, scope := range []belay.ApprovalScope{{}, {Kind: belay.ScopeSession}, {Kind: belay.ScopePattern, Pattern: "*"}, {Kind: belay.ScopePattern, Pattern: strings.Repeat("語", 512)}} {
			asked := fullApproval("a", fmt.Sprint("approval-", i))
			h.commit(t, belay.Commit{Approvals: []belay.Approval{asked}})
			by := decision(asked, "ann")
			by.Scope = scope
			s.decide(t, by)
			asked.Decided = &by
			want = append(want, asked)
		}
		h.wantApprovals(t, want...)
	}},
	{"an impossible scope is ErrScope, and the approval stays pending", func(t testing.TB, s *subject) {
		h, asked := s.asked(t)
		refused := func(d belay.Decision) {
			t.Helper()
			same(t, "the returned approval", asked, s.refuseDecision(t, belay.ErrScope, d))
		}
		no := refusal(asked, "ann")
		for _, no.Scope = range []belay.ApprovalScope{{Kind: belay.ScopeSession}, {Kind: belay.ScopePattern, Pattern: "*"}} {
			refused(no)
		}
		yes := decision(asked, "ann")
		for _, yes.Scope = range []belay.ApprovalScope{
			{Kind: "for ever"},
			{Pattern: "*"},
			{Kind: belay.ScopeSession, Pattern: "*"},
			{Kind: belay.ScopePattern},
			{Kind: belay.ScopePattern, Pattern: " "},
			{Kind: belay.ScopePattern, Pattern: strings.Repeat("x", 513)},
		} {
			refused(yes)
		}
		h.wantApprovals(t, asked)
		s.decide(t, decision(asked, "ann"))
	}},
	{"other errors of a decision come before those of its scope", func(t testing.TB, s *subject) {
		h, asked := s.asked(t)
		bad := decision(asked, "ann")
		bad.Scope.Kind, bad.Hash = "for ever", "sha256:other"
		s.refuseDecision(t, belay.ErrWrongHash, bad)
		bad.Hash = asked.Hash
		late := fullApproval("a", "approval-2")
		late.Expires = noon.AddDate(-20, 0, 0)
		h.commit(t, belay.Commit{Approvals: []belay.Approval{late}})
		bad.Approval = late.ID
		s.refuseDecision(t, belay.ErrExpired, bad)
		s.decide(t, decision(asked, "ann"))
		bad.Approval = asked.ID
		s.refuseDecision(t, belay.ErrDecided, bad)
	}},
	{"a second decision is ErrDecided, and the first one remains", func(t testing.TB, s *subject) {
		h, asked := s.asked(t)
		first := decision(asked, "ann")
		s.decide(t, first)
		asked.Decided = &first
		for _, late := range []belay.Decision{refusal(asked, "bob"), decision(asked, "bob"), first} {
			same(t, "the approval returned to the second", asked, s.refuseDecision(t, belay.ErrDecided, late))
		}
		h.wantApprovals(t, asked)
	}},
	{"an approval that was committed with its decision is ErrDecided", func(t testing.TB, s *subject) {
		h, asked := s.asked(t)
		by := decision(asked, "a hook")
		asked.Decided = &by
		h.commit(t, belay.Commit{Approvals: []belay.Approval{asked}})
		s.refuseDecision(t, belay.ErrDecided, decision(asked, "ann"))
	}},
	{"an expired approval is ErrExpired and stays pending", func(t testing.TB, s *subject) {
		h, asked := s.asked(t)
		asked.Expires = noon.AddDate(-20, 0, 0)
		h.commit(t, belay.Commit{Approvals: []belay.Approval{asked}})
		same(t, "the returned approval", asked, s.refuseDecision(t, belay.ErrExpired, decision(asked, "ann")))
		h.wantApprovals(t, asked)
	}},
	{"an approval without Expires does not expire", func(t testing.TB, s *subject) {
		h, asked := s.asked(t)
		asked.Asked, asked.Expires = noon.AddDate(-20, 0, 0), time.Time{}
		h.commit(t, belay.Commit{Approvals: []belay.Approval{asked}})
		s.decide(t, decision(asked, "ann"))
	}},
	{"a decided approval is ErrDecided even after it has expired", func(t testing.TB, s *subject) {
		h, asked := s.asked(t)
		by := decision(asked, "ann")
		asked.Expires, asked.Decided = noon.AddDate(-20, 0, 0), &by
		h.commit(t, belay.Commit{Approvals: []belay.Approval{asked}})
		s.refuseDecision(t, belay.ErrDecided, decision(asked, "bob"))
	}},
	{"an approval of an earlier response can still be decided, once", func(t testing.TB, s *subject) {
		h, asked := s.asked(t)
		h.respond(t, "call-1")
		s.decide(t, decision(asked, "ann"))
		s.refuseDecision(t, belay.ErrDecided, decision(asked, "bob"))
	}},
	{"parallel calls have approvals of their own", func(t testing.TB, s *subject) {
		h := s.hold(t, "a")
		h.respond(t, "call-1", "call-2")
		one, two := fullApproval("a", "approval-1"), fullApproval("a", "approval-2")
		two.Call = "call-2"
		h.commit(t, belay.Commit{Approvals: []belay.Approval{one, two}})
		by := decision(two, "ann")
		s.decide(t, by)
		two.Decided = &by
		h.wantApprovals(t, one, two)
	}},
}

// asked opens a session with a call that waits for an approval, and returns the approval.
func (s *subject) asked(t testing.TB) (*hold, belay.Approval) {
	t.Helper()
	h := s.hold(t, "a")
	calls := judged(h.respond(t, "call-1"))
	asked := fullApproval("a", "approval-1")
	calls[0].State, calls[0].Wait = belay.CallParked, asked.ID
	h.commit(t, belay.Commit{Calls: calls, Approvals: []belay.Approval{asked}})
	return h, asked
}

func (h *hold) wantApprovals(t testing.TB, want ...belay.Approval) {
	t.Helper()
	same(t, "Approvals", want, byID(h.reread(t).Approvals))
}

// decide decides an approval and fails the test on an error.
func (s *subject) decide(t testing.TB, d belay.Decision) belay.Approval {
	t.Helper()
	a, err := s.Decide(context.Background(), d)
	if err != nil {
		t.Fatalf("Decide(%s by %s): %v", d.Approval, d.By, err)
	}
	return a
}

// refuseDecision makes a decision that must fail with the error want. It returns the
// approval that Decide returned with the error.
func (s *subject) refuseDecision(t testing.TB, want error, d belay.Decision) belay.Approval {
	t.Helper()
	a, err := s.Decide(context.Background(), d)
	for _, e := range []error{belay.ErrNotFound, belay.ErrWrongHash, belay.ErrDecided, belay.ErrExpired, belay.ErrScope} {
		if errors.Is(err, e) != errors.Is(want, e) {
			t.Errorf("Decide(%s by %s) gave the error %v, want one that is %q", d.Approval, d.By, err, want)
			break
		}
	}
	return a
}
