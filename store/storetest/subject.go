package storetest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// subject is a store under test.
type subject struct {
	belay.Store

	opts Options
}

// hold is a session that the test holds. It counts the messages.
type hold struct {
	s       *subject
	session string
	epoch   int64
	last    int64
}

// take opens a session and fails the test on an error.
func (s *subject) take(t testing.TB, session string) (*hold, *belay.Stored) {
	t.Helper()
	stored, err := s.Open(context.Background(), session)
	if err != nil {
		t.Fatalf("Open(%q): %v", session, err)
	}
	return &hold{s, session, stored.Epoch, stored.Last}, stored
}

// hold opens a session and fails the test on an error.
func (s *subject) hold(t testing.TB, session string) *hold {
	t.Helper()
	h, _ := s.take(t, session)
	return h
}

// look opens a session, reads it, and releases it.
func (s *subject) look(t testing.TB, session string) *belay.Stored {
	t.Helper()
	h, stored := s.take(t, session)
	h.release(t)
	return stored
}

func (h *hold) release(t testing.TB) {
	t.Helper()
	if err := h.s.Release(context.Background(), h.session, h.epoch); err != nil {
		t.Fatalf("Release(%q, %d): %v", h.session, h.epoch, err)
	}
}

// reread releases a session and opens it again. It returns what Open has read.
func (h *hold) reread(t testing.TB) *belay.Stored {
	t.Helper()
	h.release(t)
	again, stored := h.s.take(t, h.session)
	*h = *again
	return stored
}

// commit commits to the session and fails the test on an error.
func (h *hold) commit(t testing.TB, c belay.Commit) {
	t.Helper()
	if err := h.try(context.Background(), c); err != nil {
		t.Fatalf("Commit: %v", err)
	}
	h.last += int64(len(c.Messages))
}

// try commits to the session with the epoch of the hold.
func (h *hold) try(ctx context.Context, c belay.Commit) error {
	c.Session, c.Epoch = h.session, h.epoch
	return h.s.Commit(ctx, &c)
}

// refuse makes a commit that must fail. If want is not nil, the error must wrap want.
func (h *hold) refuse(t testing.TB, want error, c belay.Commit) {
	t.Helper()
	switch err := h.try(context.Background(), c); {
	case err == nil:
		t.Errorf("the commit was accepted, want it rejected with %v", want)
	case want != nil && !errors.Is(err, want):
		t.Errorf("Commit gave the error %q, want one that is %q", err, want)
	}
}

// say commits user messages with the next numbers.
func (h *hold) say(t testing.TB, texts ...string) {
	t.Helper()
	var messages []*belay.Message
	for i, text := range texts {
		messages = append(messages, user(h.last+1+int64(i), text))
	}
	h.commit(t, belay.Commit{Messages: messages})
}

// respond commits a response with the given calls, and returns the message.
func (h *hold) respond(t testing.TB, ids ...string) *belay.Message {
	t.Helper()
	m := response(h.last+1, ids...)
	h.commit(t, belay.Commit{Messages: []*belay.Message{m}, Calls: judged(m)})
	return m
}

// read reads the messages of a session and fails the test on an error.
func (s *subject) read(t testing.TB, session string, after int64) []*belay.Message {
	t.Helper()
	var messages []*belay.Message
	for m, err := range s.Read(context.Background(), session, after) {
		if err != nil {
			t.Fatalf("Read(%q, %d): %v", session, after, err)
		}
		messages = append(messages, m)
	}
	return messages
}

// wantNumbers asserts the numbers of messages, in order.
func wantNumbers(t testing.TB, what string, messages []*belay.Message, want ...int64) {
	t.Helper()
	got := make([]int64, len(messages))
	for i, m := range messages {
		got[i] = m.Seq
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s have the numbers %d, want %d", what, got, want)
	}
}

// byID sorts approvals by id, because Open returns them in any order.
func byID(approvals []belay.Approval) []belay.Approval {
	return slices.SortedFunc(slices.Values(approvals), func(a, b belay.Approval) int { return cmp.Compare(a.ID, b.ID) })
}

// journaled returns the store as a belay.JournalStore, or skips the rule.
func (s *subject) journaled(t testing.TB) belay.JournalStore {
	t.Helper()
	js, ok := s.Store.(belay.JournalStore)
	if !ok {
		t.Skip("storetest: the store is not a belay.JournalStore")
	}
	return js
}

// canList reports whether the store has a journal that can be listed.
func (s *subject) canList() bool {
	js, ok := s.Store.(belay.JournalStore)
	if ok {
		_, ok = js.Journal().(hook.ListJournal)
	}
	return ok
}

// canCount reports whether the store has a queue that counts the waiting jobs.
func (s *subject) canCount() bool {
	js, ok := s.Store.(belay.JournalStore)
	if ok {
		_, ok = js.Queue().(hook.StatQueue)
	}
	return ok
}

// runs lists the stored runs. It skips the rule if the journal cannot be listed.
func (s *subject) runs(t testing.TB) []hook.Run {
	t.Helper()
	lister, ok := s.journaled(t).Journal().(hook.ListJournal)
	if !ok {
		t.Skip("storetest: the journal is not a hook.ListJournal")
	}
	var runs []hook.Run
	for run, err := range lister.List(context.Background(), hook.Filter{}) {
		if err != nil {
			t.Fatalf("List: %v", err)
		}
		runs = append(runs, run)
	}
	return runs
}

// stats returns the queue's statistics. It skips the rule if the queue has none.
func (s *subject) stats(t testing.TB) hook.QueueStats {
	t.Helper()
	queue, ok := s.journaled(t).Queue().(hook.StatQueue)
	if !ok {
		t.Skip("storetest: the queue is not a hook.StatQueue")
	}
	stats, err := queue.Stats(context.Background())
	if err != nil {
		t.Fatalf("Stats: %v", err)
	}
	return stats
}
