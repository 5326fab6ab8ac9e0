package storetest

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/belay-run/belay"
)

var inboxRules = []rule{
	{"approvals are listed with every field, decided or not", func(t testing.TB, s *subject) {
		h := s.inbox(t)
		pending, decided := fullApproval("a", "approval-1"), fullApproval("a", "approval-2")
		decided.Asked = noon.Add(time.Second)
		h.commit(t, belay.Commit{Approvals: []belay.Approval{pending, decided}})
		by := decision(decided, foreign)
		s.decide(t, by)
		decided.Decided = &by
		same(t, "Approvals", []belay.Approval{pending, decided}, s.approvals(t, belay.ApprovalFilter{}))
	}},
	{"a replaced approval is listed once, in its new state", func(t testing.TB, s *subject) {
		h := s.inbox(t)
		a := fullApproval("a", "approval-1")
		h.commit(t, belay.Commit{Approvals: []belay.Approval{a}})
		a.Reason = "another"
		h.commit(t, belay.Commit{Approvals: []belay.Approval{a}})
		same(t, "Approvals", []belay.Approval{a}, s.approvals(t, belay.ApprovalFilter{}))
	}},
	{"approvals are listed in the order in which they were asked", func(t testing.TB, s *subject) {
		s.questions(t)
		s.wantInbox(t, belay.ApprovalFilter{}, "d", "b", "a", "c")
	}},
	{"approvals are selected by their session", func(t testing.TB, s *subject) {
		s.questions(t)
		s.wantInbox(t, belay.ApprovalFilter{Session: "one"}, "b", "a")
		s.wantInbox(t, belay.ApprovalFilter{Session: "two"}, "d", "c")
		s.wantInbox(t, belay.ApprovalFilter{Session: "t"})
	}},
	{"one approval is found by its exact id", func(t testing.TB, s *subject) {
		s.questions(t)
		s.wantInbox(t, belay.ApprovalFilter{ID: "b"}, "b")
		s.wantInbox(t, belay.ApprovalFilter{ID: "b", Session: "one"}, "b")
		s.wantInbox(t, belay.ApprovalFilter{ID: "b", Session: "two"})
		s.wantInbox(t, belay.ApprovalFilter{ID: "nobody"})
	}},
	{"a filter selects undecided approvals, including expired ones", func(t testing.TB, s *subject) {
		asked := s.questions(t)
		late := fullApproval("three", "late")
		late.Asked, late.Expires = noon.AddDate(-21, 0, 0), noon.AddDate(-20, 0, 0)
		h := s.hold(t, "three")
		h.respond(t, "call-1")
		h.commit(t, belay.Commit{Approvals: []belay.Approval{late}})
		s.wantInbox(t, belay.ApprovalFilter{Pending: true}, "late", "d", "b", "a", "c")
		yes, no := decision(asked["b"], "ann"), refusal(asked["c"], "bob")
		s.decide(t, yes)
		s.decide(t, no)
		s.wantInbox(t, belay.ApprovalFilter{Pending: true}, "late", "d", "a")
		s.wantInbox(t, belay.ApprovalFilter{}, "late", "d", "b", "a", "c")
	}},
	{"a listing of approvals stops at its limit", func(t testing.TB, s *subject) {
		s.questions(t)
		s.wantInbox(t, belay.ApprovalFilter{Limit: 1}, "d")
		s.wantInbox(t, belay.ApprovalFilter{Limit: 3}, "d", "b", "a")
		s.wantInbox(t, belay.ApprovalFilter{Limit: 9}, "d", "b", "a", "c")
	}},
	{"a listing of approvals continues after an approval", func(t testing.TB, s *subject) {
		asked := s.questions(t)
		s.wantInbox(t, belay.ApprovalFilter{After: "d"}, "b", "a", "c")
		s.wantInbox(t, belay.ApprovalFilter{After: "b", Limit: 1}, "a")
		s.wantInbox(t, belay.ApprovalFilter{After: "c"})
		s.wantInbox(t, belay.ApprovalFilter{After: "nobody"})
		s.wantInbox(t, belay.ApprovalFilter{After: "d", Session: "two"}, "c")
		s.decide(t, decision(asked["b"], "ann"))
		s.wantInbox(t, belay.ApprovalFilter{After: "b", Pending: true}, "a", "c") // the approval itself need not match
	}},
	{"an approval is listed if all parts of the filter match", func(t testing.TB, s *subject) {
		asked := s.questions(t)
		s.decide(t, decision(asked["d"], "ann"))
		s.wantInbox(t, belay.ApprovalFilter{Pending: true, Limit: 1}, "b") // the limit counts only matching approvals
		s.wantInbox(t, belay.ApprovalFilter{Session: "two", Pending: true}, "c")
		s.wantInbox(t, belay.ApprovalFilter{Session: "one", Pending: true, Limit: 1}, "b")
	}},
	{"approvals of earlier responses are listed", func(t testing.TB, s *subject) {
		h := s.inbox(t)
		h.commit(t, belay.Commit{Approvals: []belay.Approval{fullApproval("a", "old")}})
		h.say(t, "results")
		h.respond(t, "call-1")
		newer := fullApproval("a", "new")
		newer.Asked = noon.Add(time.Minute)
		h.commit(t, belay.Commit{Approvals: []belay.Approval{newer}})
		s.wantInbox(t, belay.ApprovalFilter{Pending: true}, "old", "new")
		h.release(t) // listing needs no hold
		s.wantInbox(t, belay.ApprovalFilter{Session: "a"}, "old", "new")
	}},
	{"changing a listed approval does not change the store", func(t testing.TB, s *subject) {
		asked := s.questions(t)
		by := decision(asked["d"], "ann")
		s.decide(t, by)
		first := s.approvals(t, belay.ApprovalFilter{})[0]
		if first.Decided == nil {
			t.Fatal("a decided approval is listed without its decision")
		}
		first.Decided.Allow, first.Decided.By = false, "nobody"
		same(t, "Decided", &by, s.approvals(t, belay.ApprovalFilter{})[0].Decided)
	}},
	{"a listing of approvals can be abandoned and started again", func(t testing.TB, s *subject) {
		asked := s.questions(t)
		pending := s.listed(t).Approvals(context.Background(), belay.ApprovalFilter{Pending: true})
		for i, want := range [][]string{{"d", "b"}, {"b", "a"}} {
			wantIDs(t, "the approvals", pull(t, pending, 2), approvalID, want...)
			if i == 0 {
				s.decide(t, decision(asked["d"], "ann")) // the abandoned listing holds no lock, and the next listing sees the change
			}
		}
	}},
	{"an approval can be decided during a listing", func(t testing.TB, s *subject) {
		s.questions(t)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for a, err := range s.listed(t).Approvals(ctx, belay.ApprovalFilter{Pending: true}) {
			if err != nil {
				t.Fatalf("Approvals: %v", err)
			}
			if _, err := s.Decide(ctx, decision(a, "ann")); err != nil {
				t.Fatalf("Decide(%s) while approvals are listed: %v", a.ID, err)
			}
		}
		s.wantInbox(t, belay.ApprovalFilter{Pending: true})
		s.wantInbox(t, belay.ApprovalFilter{}, "d", "b", "a", "c")
	}},
	{"a cancelled listing of approvals ends with an error", func(t testing.TB, s *subject) {
		s.questions(t)
		wantCancelled(t, func(ctx context.Context) iter.Seq2[belay.Approval, error] {
			return s.listed(t).Approvals(ctx, belay.ApprovalFilter{})
		})
	}},
}

// inbox opens a session with a call. It skips the rule if the store cannot list.
func (s *subject) inbox(t testing.TB) *hold {
	t.Helper()
	s.listed(t)
	h := s.hold(t, "a")
	h.respond(t, "call-1")
	return h
}

// questions makes two sessions with two approvals each, asked in the order d, b, a, c. It
// returns the approvals by id.
func (s *subject) questions(t testing.TB) map[string]belay.Approval {
	t.Helper()
	s.listed(t)
	all := make(map[string]belay.Approval)
	for _, q := range []struct {
		session string
		ids     []string
	}{{"one", []string{"a", "b"}}, {"two", []string{"c", "d"}}} {
		h := s.hold(t, q.session)
		h.respond(t, "call-1", "call-2")
		var asked []belay.Approval
		for _, id := range q.ids {
			a := fullApproval(q.session, id)
			a.Asked = noon.Add(time.Duration(map[string]int{"d": 1, "b": 2, "a": 10, "c": 30}[id]) * time.Second)
			all[id] = a
			asked = append(asked, a)
		}
		h.commit(t, belay.Commit{Approvals: asked})
	}
	return all
}

// approvals lists approvals and fails the test on an error.
func (s *subject) approvals(t testing.TB, filter belay.ApprovalFilter) []belay.Approval {
	t.Helper()
	return pull(t, s.listed(t).Approvals(context.Background(), filter), 0)
}

// wantInbox asserts the ids of the listed approvals.
func (s *subject) wantInbox(t testing.TB, filter belay.ApprovalFilter, want ...string) {
	t.Helper()
	wantIDs(t, fmt.Sprintf("the approvals of %+v", filter), s.approvals(t, filter), approvalID, want...)
}

func approvalID(a belay.Approval) string { return a.ID }
