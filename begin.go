package belay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/belay-run/belay/hook"
)

// errLeft is why a turn is aborted whose stream nobody reads any more.
var errLeft = errors.New("the stream was left")

// take takes a turn without a stream.
func (s *Session) take(ctx context.Context, how func(*turn) EndReason) (*Turn, error) {
	t, err := s.newTurn(ctx)
	if err != nil {
		return nil, err
	}
	t.run(how)
	return t.result, t.result.err
}

// stream takes a turn whose events are read as they happen.
func (s *Session) stream(ctx context.Context, how func(*turn) EndReason) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		t, err := s.newTurn(ctx)
		if err != nil {
			yield(Event{}, err)
			return
		}
		t.out, t.left = make(chan Event), make(chan struct{})
		go func() {
			defer close(t.out)
			t.run(how)
		}()
		over := false
		defer func() { // however the consumer leaves: by break, by a panic, by runtime.Goexit
			if !over {
				cancel(errLeft)
				close(t.left)
				for range t.out {
				} // the turn ends before we do
			}
		}()
		for event := range t.out {
			if !yield(event, nil) {
				return
			}
		}
		over = true
		if t.result.err != nil {
			yield(Event{}, t.result.err)
		}
	}
}

// newTurn waits for the session and takes it.
func (s *Session) newTurn(ctx context.Context) (*turn, error) {
	if err := s.acquire(ctx, s.agent.opts.Busy); err != nil {
		return nil, fmt.Errorf("session %q: %w", s.id, err)
	}
	base := ctx
	if ctx.Done() != nil {
		base = context.WithoutCancel(ctx)
	}
	t := &turn{
		agent: s.agent, session: s, model: s.agent.model, ctx: ctx, base: base,
		scope: &hook.Scope{Session: s.id, Agent: s.agent.opts.Name}, tools: s.agent.tools.Load(), clean: true,
	}
	t.state = &t.own
	if t.lineage = lineageOf(ctx); t.lineage != nil {
		t.tools = t.limited(t.tools)
	}
	return t, nil
}

// run takes the turn. Whatever comes to a sudden end in it, a model, a store, a
// handler that calls runtime.Goexit, the turn itself is ended in order.
func (t *turn) run(how func(*turn) EndReason) {
	defer func() { <-t.session.slot }()
	defer t.rescue(t.conclude)
	defer t.rescue(t.finish)
	t.snap = t.agent.hooks.Snapshot()
	t.finish(t.open(how))
}

// rescue is deferred. It ends a turn that did not come to its end.
func (t *turn) rescue(finish func(EndReason)) {
	if t.result != nil {
		return
	}
	sudden := recover()
	if sudden == nil {
		sudden = "runtime.Goexit was called"
	}
	end := t.failed(fmt.Errorf("the turn came to a sudden end: %v", sudden))
	if t.session.held && t.state.ID != "" && !t.ending {
		if err := t.answerOpen(false); err != nil {
			t.err = errors.Join(t.err, err)
		}
	}
	finish(end)
}

// fire asks a phase.
func fire[In any, Out hook.Output](ctx context.Context, t *turn, phase hook.Phase[In, Out], in In) (hook.Outcome[In, Out], error) {
	t.clean = t.clean && !t.agent.riding // else there are records to store
	return phase.Dispatch(ctx, t.snap, in)
}

// open opens the session if need be, and then takes the turn.
func (t *turn) open(how func(*turn) EndReason) EndReason {
	s := t.session
	if err := t.inherit(); err != nil {
		return t.failed(err)
	}
	if err := s.open(t.ctx); err != nil {
		return t.failed(err)
	}
	if s.state.Model != "" || s.model != nil {
		t.recallModel()
	}
	if !s.started {
		s.started = true
		if SessionStart.Active(t.snap) {
			outcome, err := fire(t.ctx, t, SessionStart, SessionOpened{newInput(t.scope, sessionOpened{Source: s.source(), Messages: int(s.last)})})
			t.hear(outcome.Output, outcome.Diagnostics)
			if err != nil {
				s.started = false
				return t.failed(err)
			}
		}
	}
	return how(t)
}

// begin makes it a new turn.
func (t *turn) begin() {
	s := t.session
	s.state.Turns++
	s.state.Agent = t.agent.opts.Name
	// The number tells people which turn it is; the rest keeps a turn that was
	// never stored from being taken for another.
	id := strconv.AppendInt(make([]byte, 0, 32), int64(s.state.Turns), 10)
	id = strconv.AppendUint(append(id, t.agent.serial...), t.agent.turns.Add(1), 36)
	t.own = TurnState{ID: string(id)}
	s.state.Turn = &t.own
	t.adopt(&t.own)
	t.clean = false
	t.emit(Event{Kind: EventTurnStart})
}

// adopt makes it the turn of a state.
func (t *turn) adopt(state *TurnState) {
	if state != &t.own { // hooks may have run in it before
		t.snap.Resumes(state.ID)
	}
	t.state = state
	t.at(state.Step)
}

// at makes it a step of the turn.
func (t *turn) at(step int) {
	t.scope = &hook.Scope{Session: t.session.id, Turn: t.state.ID, Step: step, Agent: t.agent.opts.Name}
}

// commit stores messages and what goes with them, with the records of hooks so
// far. What could not be stored is not part of the session.
func (t *turn) commit(messages []*Message, calls []Call, approvals []Approval) error {
	t.commitment = Commit{Messages: messages, Calls: calls, Approvals: approvals}
	return t.store()
}

// store writes t.commitment: the rest of it is filled in here. The session's state is
// stored unless the commitment has one of its own.
func (t *turn) store() (err error) {
	s := t.session
	c := &t.commitment // it is ours again when Commit returns
	messages := c.Messages
	now := time.Now()
	for i, m := range messages {
		if m.Time.IsZero() { // a reminder that was sent has its place already
			m.Seq, m.Turn, m.Step, m.Time = s.last+int64(i)+1, t.state.ID, t.scope.Step, now
		}
	}
	c.Session, c.Epoch = s.id, s.epoch
	if c.State == nil {
		c.State = &s.state
	}
	if t.queued != "" {
		c.Queued = t.takesUp(messages)
	}
	if t.agent.riding {
		c.Runs = t.snap.Take()
	}
	stored := false
	defer func() {
		if !stored { // be it that the store came to a sudden end
			t.lost = t.served
			s.doubt(t.base)
			// The turn has failed, and the records tell why: they do not go with it.
			err = errors.Join(err, t.snap.Record(t.base, c.Runs))
		}
	}()
	if t.gone() {
		return fmt.Errorf("session %q: %w", s.id, ErrHandedOver)
	}
	if err := t.agent.store.Commit(t.base, c); err != nil {
		return fmt.Errorf("session %q: store: %w", s.id, err)
	}
	stored = true
	s.last += int64(len(messages))
	if c.Amended != nil { // a copy, because others may read the old slice
		s.messages = slices.Clone(s.messages)
		s.messages[len(s.messages)-1] = c.Amended
	}
	if n := len(t.placed); n > 0 && len(messages) > 0 && t.placed[n-1] == messages[0] {
		s.messages, messages = t.placed, messages[1:] // a request holds the first in its place: nobody writes there
	}
	s.messages = append(s.messages, messages...)
	t.placed = nil
	if c.Calls != nil {
		if s.underway == nil {
			s.underway = new(openTurn)
		}
		s.underway.calls = c.Calls
	}
	t.clean = true
	return t.tellRuns(c.Runs)
}

// tellRuns shows the runs that are meant for the user's eyes.
func (t *turn) tellRuns(runs []hook.Run) error {
	if !t.heeded() {
		return nil
	}
	if !t.agent.riding {
		runs = t.snap.Take()
		if err := t.snap.Record(t.base, runs); err != nil {
			return fmt.Errorf("session %q: %w", t.session.id, err)
		}
	}
	for i := range runs {
		if runs[i].Visibility == hook.VisibleToUser {
			t.emit(Event{Kind: EventHookRun, Step: runs[i].Scope.Step, Text: runs[i].Subscription, HookRun: &runs[i]})
		}
	}
	return nil
}

// validParts refuses what cannot be sent or stored.
func validParts(parts []Part) error {
	for i, p := range parts {
		switch {
		case p.Type == PartText && !utf8.ValidString(p.Text):
			return fmt.Errorf("part %d: the text is not UTF-8", i)
		case p.Type == PartMedia && (p.Media == nil || p.Media.MIME == "" || len(p.Media.Data) == 0 && p.Media.URL == ""):
			return fmt.Errorf("part %d: an image or a file needs a MIME type, and data or a URL", i)
		case p.Type != PartText && p.Type != PartMedia:
			return fmt.Errorf("part %d: a user message has text, images and files, and no %q", i, p.Type)
		}
	}
	return nil
}
