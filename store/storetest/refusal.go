package storetest

import (
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// picture is all that a reader can see of a session, including its runs and jobs.
type picture struct {
	Stored   belay.Stored
	Messages []*belay.Message
	Runs     []hook.Run
	Waiting  int
}

// picture reads the session and its runs and jobs. It releases the session and opens it
// again.
func (h *hold) picture(t testing.TB) picture {
	t.Helper()
	p := picture{Stored: *h.reread(t), Messages: h.s.read(t, h.session, 0)}
	p.Stored.Epoch, p.Stored.Approvals = 0, byID(p.Stored.Approvals)
	if h.s.canList() {
		p.Runs = h.s.runs(t)
	}
	if h.s.canCount() {
		p.Waiting = h.s.stats(t).Waiting
	}
	return p
}

// wantPicture asserts that the session has not changed.
func (h *hold) wantPicture(t testing.TB, before picture) {
	t.Helper()
	same(t, "the stored session", before, h.picture(t))
}

// prepared opens a session with a message, a call, an approval and a state.
func (s *subject) prepared(t testing.TB) *hold {
	t.Helper()
	h := s.hold(t, "a")
	m, state := response(1, "call-1"), fullState()
	h.commit(t, belay.Commit{
		Messages: []*belay.Message{m}, Calls: judged(m), Approvals: []belay.Approval{fullApproval("a", "approval-1")}, State: &state,
	})
	return h
}

// change returns a commit with something of every kind: a message, a call, approvals, a
// state, and a run and a job if the store keeps them.
func (h *hold) change() belay.Commit {
	call := judged(response(1, "call-1"))[0]
	call.State = belay.CallStarted
	replaced, added := fullApproval(h.session, "approval-1"), fullApproval(h.session, "approval-2")
	replaced.Reason = "another"
	c := belay.Commit{
		Messages: []*belay.Message{user(h.last+1, "next")}, Calls: []belay.CallRecord{call},
		Approvals: []belay.Approval{replaced, added}, State: &belay.SessionState{Turns: 99},
	}
	if js, ok := h.s.Store.(belay.JournalStore); ok {
		c.Runs = []hook.Run{sampleRun("new", hook.Completed)}
		if js.Queue() != nil {
			c.Jobs = []hook.Job{sampleJob("new")}
		}
	}
	return c
}

// refusalRules are the rules about rejected commits: they change nothing.
var refusalRules = []rule{
	{"a fenced commit changes nothing", func(t testing.TB, s *subject) {
		h := s.prepared(t)
		before := h.picture(t)
		former := *h
		former.epoch--
		former.refuse(t, belay.ErrFenced, former.change())
		h.wantPicture(t, before)
	}},
	{"a conflicting commit changes nothing", func(t testing.TB, s *subject) {
		h := s.prepared(t)
		before := h.picture(t)
		gap := h.change()
		gap.Messages = []*belay.Message{user(2, "two"), user(4, "four")}
		h.refuse(t, belay.ErrConflict, gap)
		h.wantPicture(t, before)
		again := h.change()
		again.Messages = []*belay.Message{user(1, "one")}
		h.refuse(t, belay.ErrConflict, again)
		h.wantPicture(t, before)
	}},
	{"a commit with a run that has already ended differently changes nothing", func(t testing.TB, s *subject) {
		s.journaled(t)
		h := s.prepared(t)
		h.commit(t, belay.Commit{Runs: []hook.Run{sampleRun("ended", hook.Completed)}})
		before := h.picture(t)
		c := h.change()
		c.Runs = append(c.Runs, sampleRun("ended", hook.Failed))
		h.refuse(t, hook.ErrSettled, c)
		h.wantPicture(t, before)
		c.Jobs = nil
		h.refuse(t, hook.ErrSettled, c)
		h.wantPicture(t, before)
	}},
	{"a commit with an invalid job changes nothing", func(t testing.TB, s *subject) {
		s.queued(t)
		h := s.prepared(t)
		before := h.picture(t)
		c := h.change()
		c.Jobs = append(c.Jobs, hook.Job{Handler: "sample", Key: "key:no-id"})
		h.refuse(t, nil, c)
		h.wantPicture(t, before)
	}},
	{"a commit with too many jobs is hook.ErrQueueFull and changes nothing", func(t testing.TB, s *subject) {
		h := s.prepared(t)
		h.fillQueue(t)
		before := h.picture(t)
		h.refuse(t, hook.ErrQueueFull, h.change())
		h.wantPicture(t, before)
		c := h.change()
		c.Jobs = nil
		h.commit(t, c) // without jobs the commit succeeds
	}},
	{"a rejected commit succeeds when the reason is removed", func(t testing.TB, s *subject) {
		h := s.prepared(t)
		c := h.change()
		c.Messages = []*belay.Message{user(5, "five")}
		h.refuse(t, belay.ErrConflict, c)
		before := h.picture(t)
		c = h.change()
		h.commit(t, c)
		after := h.picture(t)
		if after.Stored.Last != 2 || after.Stored.State.Turns != 99 || len(after.Stored.Approvals) != 2 ||
			len(after.Runs)-len(before.Runs) > 1 || after.Waiting-before.Waiting > 1 {
			t.Errorf("after the commit %+v is stored, want all of it, once", after)
		}
	}},
}
