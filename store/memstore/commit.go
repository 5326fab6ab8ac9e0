package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// Commit stores all of c or nothing. It makes all checks first. Then it writes to the
// journal and the queue, which can still fail. The remaining steps cannot fail.
func (s *Store) Commit(ctx context.Context, c *belay.Commit) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	se, ok := s.sessions[c.Session]
	if !ok || !se.held || se.epoch != c.Epoch {
		return fmt.Errorf("commit to session %q with epoch %d: %w", c.Session, c.Epoch, belay.ErrFenced)
	}
	if err := s.follows(se, c); err != nil {
		return fmt.Errorf("commit to session %q: %w", c.Session, err)
	}
	if err := s.record(ctx, c); err != nil {
		return fmt.Errorf("commit to session %q: %w", c.Session, err)
	}
	if c.Amended != nil {
		se.amend(c.Amended)
	}
	for _, m := range c.Messages {
		s.say(se, m)
	}
	for i := range c.Calls {
		s.place(se, &c.Calls[i])
	}
	for i := range c.Approvals {
		s.ask(se, &c.Approvals[i])
	}
	if c.State != nil {
		s.remember(se, c.State)
	}
	s.touch(se)
	return nil
}

// follows returns an error if a commit does not continue the stored session.
func (s *Store) follows(se *session, c *belay.Commit) error {
	last := int64(len(se.messages))
	if m := c.Amended; m != nil && (m.Seq != last || last == 0) {
		return fmt.Errorf("message %d cannot be replaced, because the last message is %d: %w", m.Seq, last, belay.ErrConflict)
	}
	for _, m := range c.Messages {
		if last++; m.Seq != last {
			return fmt.Errorf("message %d cannot be added, because the next message number is %d: %w", m.Seq, last, belay.ErrConflict)
		}
	}
	for i := range c.Calls {
		if at := c.Calls[i].Message; at < 1 || at > last {
			return fmt.Errorf("call %q belongs to message %d, but the last message is %d: %w", c.Calls[i].ID, at, last, belay.ErrConflict)
		}
	}
	for i := range c.Approvals {
		a := &c.Approvals[i]
		if known, ok := s.approvals[a.ID]; a.Session != c.Session || ok && known.of != se {
			return fmt.Errorf("approval %q belongs to another session: %w", a.ID, belay.ErrConflict)
		}
	}
	return nil
}

// record stores the runs and jobs of a commit, all or none.
func (s *Store) record(ctx context.Context, c *belay.Commit) error {
	switch {
	case len(c.Jobs) > 0:
		// The queue ignores the empty run. It stores the commit's runs through
		// commitJournal.
		return s.queue.Enqueue(context.WithValue(ctx, commitRuns{}, c.Runs), hook.Run{}, c.Jobs)
	case len(c.Runs) > 0:
		return s.journal.Append(ctx, c.Runs)
	default:
		return nil
	}
}

// amend replaces the last message. It copies the slice, because readers may still use the
// old slice.
func (se *session) amend(m *belay.Message) {
	se.messages = append(slices.Clone(se.messages[:len(se.messages)-1]), m)
	if own := se.besides; own != nil && own.visible != nil {
		own.visible = append(slices.Clone(own.visible[:len(own.visible)-1]), m)
	}
}

// say appends a message and updates the fields that depend on the last response.
func (s *Store) say(se *session, m *belay.Message) {
	if se.messages == nil {
		se.messages = make([]*belay.Message, 0, 4) // a turn with one call stores four messages
	}
	se.messages = append(se.messages, m)
	if m.IsCompaction {
		s.own(se).visible = belay.Visible(se.messages) // Visible returns a slice without spare capacity, which matters because the slice lives long
	} else if own := se.besides; own != nil && own.visible != nil {
		own.visible = append(own.visible, m)
	}
	if m.Kind != belay.KindAssistant {
		return
	}
	se.response = m.Seq
	own := se.besides
	if own == nil {
		return
	}
	clear(own.calls) // release inputs and results
	own.calls, own.asked = own.calls[:0], len(own.approvals)
	switch {
	case slices.ContainsFunc(m.Parts, func(p belay.Part) bool { return p.Call != nil }): // keep the slice for the calls of this response
	case own.visible == nil && len(own.approvals) == 0:
		se.besides = nil // saves memory while the session has no calls and no approvals
		s.spareBesides = own
	default:
		own.calls = nil
	}
}

// place stores a call at its index. It ignores calls of earlier responses, because nobody
// reads them again.
func (s *Store) place(se *session, c *belay.CallRecord) {
	if c.Message != se.response {
		return
	}
	own := s.own(se)
	at, found := slices.BinarySearchFunc(own.calls, c.Index, func(have belay.CallRecord, index int) int {
		return cmp.Compare(have.Index, index)
	})
	if found {
		own.calls[at] = *c
	} else {
		own.calls = slices.Insert(own.calls, at, *c)
	}
}

// remember stores a copy of a session state. The copy of the open turn belongs to the store
// alone, so the next session that opens a turn reuses its memory.
func (s *Store) remember(se *session, state *belay.SessionState) {
	old, fork := se.state.Turn, se.state.ForkedFrom
	se.state = *state
	if old == nil {
		old, s.spare = s.spare, nil
	}
	switch {
	case state.Turn != nil:
		if old == nil {
			old = new(belay.TurnState)
		}
		*old = *state.Turn
		se.state.Turn = old
	case old != nil: // the turn has ended
		*old = belay.TurnState{}
		s.spare = old
	}
	if state.ForkedFrom != nil {
		if fork == nil {
			fork = new(belay.ForkPoint)
		}
		*fork = *state.ForkedFrom
		se.state.ForkedFrom = fork
	}
}
