package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// reopenRules are the rules about what survives the end of a process.
var reopenRules = []rule{
	{"committed data survives the end of the process", func(t testing.TB, s *subject) {
		h := s.prepared(t)
		m := fullMessage(2)
		h.commit(t, belay.Commit{Messages: []*belay.Message{m}})
		h.commit(t, belay.Commit{Calls: []belay.CallRecord{fullCall(2, 0)}, Approvals: []belay.Approval{fullApproval("a", "approval-2")}})
		if js, ok := s.Store.(belay.JournalStore); ok {
			h.commit(t, belay.Commit{Runs: []hook.Run{sampleRun("run", hook.Started)}})
			if js.Queue() != nil {
				h.commit(t, belay.Commit{Jobs: []hook.Job{sampleJob("one")}})
			}
		}
		before := h.picture(t)
		h.release(t)
		s.reopen(t)
		again := s.hold(t, "a")
		again.wantPicture(t, before)
		again.say(t, "the session continues")
	}},
	{"the hold of a process that has ended can be taken over", func(t testing.TB, s *subject) {
		former := s.hold(t, "a")
		former.say(t, "one")
		s.reopen(t)
		stored, err := s.Open(context.Background(), "a")
		if errors.Is(err, belay.ErrHeld) && s.opts.Expire != nil {
			s.opts.Expire(t, s.Store, "a")
			stored, err = s.Open(context.Background(), "a")
		}
		if err != nil {
			t.Fatalf("Open: %v", err)
		}
		if stored.Epoch <= former.epoch {
			t.Errorf("the epoch is %d after %d", stored.Epoch, former.epoch)
		}
		stale := &hold{s: s, session: "a", epoch: former.epoch}
		stale.refuse(t, belay.ErrFenced, belay.Commit{Messages: []*belay.Message{user(2, "fenced")}})
		h := &hold{s: s, session: "a", epoch: stored.Epoch, last: stored.Last}
		h.say(t, "two")
		wantNumbers(t, "the messages", s.read(t, "a", 0), 1, 2)
	}},
	{"an approval that was pending when the process ended can be decided, once", func(t testing.TB, s *subject) {
		h, asked := s.asked(t)
		h.release(t)
		s.reopen(t)
		by := decision(asked, "ann")
		s.decide(t, by)
		s.reopen(t)
		s.refuseDecision(t, belay.ErrDecided, decision(asked, "bob"))
		asked.Decided = &by
		same(t, "Approvals", []belay.Approval{asked}, s.look(t, "a").Approvals)
	}},
}

// reopen opens the store as another process would. It skips the rule if Options.Reopen is
// not set.
func (s *subject) reopen(t testing.TB) {
	t.Helper()
	if s.opts.Reopen == nil {
		t.Skip("storetest: Options.Reopen is not set")
	}
	s.Store = s.opts.Reopen(t, s.Store)
}
