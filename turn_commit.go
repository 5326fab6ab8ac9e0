package belay

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belay-run/belay/hook"
)

// turnWrite says what the commits of a turn have stored.
type turnWrite struct {
	clean bool  // nothing is waiting to be stored
	usage Usage // the turn's usage at the last commit
}

// commit stores messages, calls and approvals, and the records of hook runs so far. If it
// fails, the messages do not become part of the session.
func (t *turn) commit(messages []*Message, calls []CallRecord, approvals []Approval) error {
	t.room.commit = Commit{Messages: messages, Calls: calls, Approvals: approvals}
	return t.store()
}

// store fills in the other fields of t.room.commit and stores the commit. If the commit
// has no state, it stores the state of the session.
func (t *turn) store() (err error) {
	s := t.session
	c := &t.room.commit // the store does not keep c after Commit
	messages := c.Messages
	var now time.Time
	for i, m := range messages {
		if m.Time.IsZero() { // a reminder that was sent already has its number
			if now.IsZero() {
				now = time.Now()
			}
			m.Seq, m.Turn, m.Step, m.Time = s.last+int64(i)+1, t.state.ID, t.scope.Step, now
		}
	}
	c.Session, c.Epoch = s.id, s.epoch
	if c.State == nil {
		c.State = &s.state
	}
	if t.queue.id != "" {
		c.Queued = t.queuedIDFor(messages)
	}
	if t.agent.riding {
		c.Runs = t.snap.Take()
	}
	stored := false
	defer func() {
		if !stored { // also true if the store panicked
			t.end.lost = t.queue.served
			t.agent.keepUnstored(s.id, unstoredUsage{t.state.ID, t.write.usage, t.state.Usage})
			s.release(t.base)
			// Keep the records: they say why the turn failed.
			err = errors.Join(err, t.snap.Record(t.base, c.Runs))
		}
	}()
	if t.wasHandedOver() {
		return fmt.Errorf("session %q: %w", s.id, ErrHandedOver)
	}
	if err := t.keepCommit(c); err != nil {
		return fmt.Errorf("session %q: store: %w", s.id, err)
	}
	stored, t.write.usage = true, t.state.Usage
	if c.State.Turn != nil { // subagents may have added usage
		t.write.usage = c.State.Turn.Usage
	}
	s.last += int64(len(messages))
	if c.Amended != nil { // make a new slice: others may still read the old one
		s.messages = slices.Clone(s.messages)
		s.messages[len(s.messages)-1] = c.Amended
	}
	if n := len(t.request.placed); n > 0 && len(messages) > 0 && t.request.placed[n-1] == messages[0] {
		s.messages, messages = t.request.placed, messages[1:] // a sent request shares this array, so its last element must not be written again
	}
	if s.messages == nil {
		s.messages = make([]*Message, 0, 4) // a turn with one call has four messages
	}
	s.messages = append(s.messages, messages...)
	if now := settledUntil(c.State, s.last); now != s.stored.Load() {
		s.stored.Store(now)
		t.agent.events.tellStored(s.id, t.agent.opts.Name, now, s.messages)
	}
	t.request.placed = nil
	if c.Calls != nil {
		if s.underway == nil {
			s.underway = new(openTurn)
		}
		s.underway.calls = c.Calls
	}
	t.write.clean = true
	return t.emitRuns(c.Runs)
}

// unstoredUsage is the usage of a turn whose last commit failed. The responses have cost
// money all the same. So addUnstored adds their usage if this process resumes the turn.
type unstoredUsage struct {
	turn           string
	stored, really Usage
}

// keepUnstored keeps the usage of a turn whose commit failed until this process resumes the
// turn.
func (a *Agent) keepUnstored(session string, u unstoredUsage) {
	if u.stored == u.really {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unstored == nil {
		a.unstored = make(map[string]unstoredUsage)
	}
	a.unstored[session] = u
}

// addUnstored adds to a resumed turn the usage that a failed commit did not store. If the
// stored usage has changed, it adds nothing: either the commit was stored after all, or
// another process has resumed the turn.
func (a *Agent) addUnstored(session string, state *TurnState) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if u, ok := a.unstored[session]; ok && u.turn == state.ID && u.stored == state.Usage {
		state.Usage = u.really
	}
	delete(a.unstored, session)
}

// emitRuns emits an event for each hook run that the user may see. If the turn's commits do
// not store the runs, emitRuns first writes the runs so far to the journal.
func (t *turn) emitRuns(runs []hook.Run) error {
	followed := t.spans.followers != nil
	if !followed && !t.hasAudience() {
		return nil
	}
	if !t.agent.riding {
		var err error
		if t.skipsRuns() {
			runs, err = nil, t.snap.Flush(t.base)
		} else {
			runs = t.snap.Take()
			err = t.snap.Record(t.base, runs)
		}
		if err != nil {
			return fmt.Errorf("session %q: %w", t.session.id, err)
		}
	}
	if followed {
		t.reportRuns(runs)
	}
	for i := range runs {
		if runs[i].Visibility == hook.VisibleToUser {
			t.emit(Event{Kind: EventHookRun, Step: runs[i].Scope.Step, Text: runs[i].Subscription, HookRun: &runs[i]})
		}
	}
	return nil
}

// commitUnjudged stores a response before its gates have answered, and the reminders that
// were sent with its request.
func (t *turn) commitUnjudged(response, delivered *Message) error {
	t.state.Unjudged = true
	messages := t.room.carried[:0]
	if delivered != nil {
		messages = append(messages, delivered)
	}
	return t.commit(append(messages, response), nil, nil)
}

// commitResponse stores a response, unless commitUnjudged has stored it. It also stores
// the reminders that were sent with the request, and the states of the calls. A call that
// will run now is stored as started. If the call must first wait for a person or for a
// slow hook of model.post, it is not stored as started yet.
func (t *turn) commitResponse(delivered *Message, b *batch) error {
	messages := t.room.carried[:0]
	if delivered != nil {
		messages = append(messages, delivered)
	}
	if !t.state.Unjudged {
		messages = append(messages, b.message)
		b.message.Seq = t.session.last + int64(len(messages)) // the records of the calls need the number
	}
	t.state.Unjudged = false
	waits := t.asking().agent.opts.OnAsk == AskWait && b.asks() || ModelPost.Slow(t.snap)
	calls := b.records(waits)
	if b.settled() {
		messages = append(messages, b.results())
	}
	t.room.commit = Commit{Messages: messages, Calls: calls, Approvals: b.approvals(), Amended: b.amended}
	return t.store()
}
