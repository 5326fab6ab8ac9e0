package belay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"unicode/utf8"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/childturn"
)

// errLeft is the cancel cause of a turn whose caller left the stream.
var errLeft = errors.New("the caller left the stream of events")

// take runs a turn without a stream.
func (s *Session) take(ctx context.Context, how func(*turn) EndReason) (*Turn, error) {
	t, err := s.newTurn(ctx)
	if err != nil {
		return notBegun(err), err
	}
	if t.lineage != nil && childturn.IsDirect(ctx) {
		t.lineage.direct.Store(true)
		t.outbox.parent = t.lineage
	}
	t.run(how)
	return t.end.result, t.end.result.err
}

// notBegun returns the result of a turn that could not begin.
func notBegun(err error) *Turn { return &Turn{Reason: EndError, Why: err.Error(), err: err} }

// stream runs a turn and yields its events as they happen.
func (s *Session) stream(ctx context.Context, how func(*turn) EndReason) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		t, err := s.newTurn(ctx)
		if err != nil {
			yield(Event{}, err)
			return
		}
		t.outbox.stream, t.outbox.left = make(chan Event), make(chan struct{})
		go func() {
			defer close(t.outbox.stream)
			t.run(how)
		}()
		over := false
		defer func() { // runs however the consumer leaves: by break, by a panic or by runtime.Goexit
			if !over {
				cancel(errLeft)
				close(t.outbox.left)
				for range t.outbox.stream {
				} // wait for the end of the turn
			}
		}()
		for event := range t.outbox.stream {
			if !yield(event, nil) {
				return
			}
		}
		over = true
		if t.end.result.err != nil {
			yield(Event{}, t.end.result.err)
		}
	}
}

// newTurn waits for the session's slot. Then it makes a turn.
func (s *Session) newTurn(ctx context.Context) (*turn, error) {
	if err := s.acquireTurn(ctx); err != nil {
		return nil, fmt.Errorf("session %q: %w", s.id, err)
	}
	t := &turn{
		agent: s.agent, session: s, model: s.agent.model, lineage: lineageOf(ctx),
		scope: s.scope(), room: turnRooms.Get().(*turnRoom),
		request: turnRequest{tools: s.agent.tools.Load()}, write: turnWrite{clean: true},
	}
	t.state = &t.own
	t.ctx = t.limit(ctx)
	if t.base = t.ctx; ctx.Done() != nil {
		t.base = context.WithoutCancel(t.ctx)
	}
	if t.lineage != nil {
		t.request.tools = t.limited(t.request.tools)
	}
	return t, nil
}

// run runs the turn. The turn ends in an orderly way even if a model, a store or a handler
// panics or calls runtime.Goexit.
func (t *turn) run(how func(*turn) EndReason) {
	defer func() { <-t.session.slot }()
	if events := t.agent.events; events.shared {
		events.enter(t.session.id)
		defer events.leave(t.session.id)
	}
	defer t.recoverPanic(t.report)
	defer t.recoverPanic(t.finish)
	t.snap = t.agent.hooks.Snapshot()
	t.finish(t.open(how))
	t.freeRoom()
}

// recoverPanic must be called with defer. If the turn panicked or called runtime.Goexit,
// recoverPanic ends the turn.
func (t *turn) recoverPanic(finish func(EndReason)) {
	if t.end.result != nil {
		return
	}
	sudden := recover()
	if sudden == nil {
		sudden = "runtime.Goexit was called"
	}
	end := t.fail(fmt.Errorf("the turn panicked: %v", sudden))
	if t.session.held && t.state.ID != "" && !t.end.begun {
		if err := t.answerOpen(false); err != nil {
			t.end.err = errors.Join(t.end.err, err)
		}
	}
	finish(end)
}

// fire dispatches a phase.
func fire[In any, Out hook.Output](ctx context.Context, t *turn, phase hook.Phase[In, Out], in In) (hook.Outcome[In, Out], error) {
	t.write.clean = t.write.clean && !t.agent.riding // hook runs make records that must be stored
	return phase.Dispatch(ctx, t.snap, in)
}

// open opens the session if this process does not hold it, and fires session.start if the
// session has just started. Then it runs the turn.
func (t *turn) open(how func(*turn) EndReason) EndReason {
	s := t.session
	if err := t.inherit(); err != nil {
		return t.fail(err)
	}
	if err := s.open(t.ctx); err != nil {
		return t.fail(err)
	}
	if s.state.Model != "" || s.model != nil {
		t.recallModel()
	}
	if !s.started {
		s.started = true
		if SessionStart.Active(t.snap) {
			outcome, err := fire(t.ctx, t, SessionStart, SessionOpened{newInput(t.scope, sessionOpened{Source: s.source(), Messages: int(s.last)})})
			t.keepAside(outcome.Output, outcome.Diagnostics)
			if err != nil {
				s.started = false
				return t.fail(err)
			}
		}
	}
	return how(t)
}

// begin begins a new turn.
func (t *turn) begin() {
	s := t.session
	s.state.Turns++
	s.state.Agent = t.agent.opts.Name
	// The id begins with the number of the turn. The suffix is unique. It keeps ids apart
	// if an earlier turn with the same number was never stored.
	id := strconv.AppendInt(make([]byte, 0, 32), int64(s.state.Turns), 10)
	id = strconv.AppendUint(append(id, t.agent.serial...), t.agent.turns.Add(1), 36)
	t.own = TurnState{ID: string(id)}
	if t.wanted != nil {
		t.own.Answer = t.wanted.schema
	}
	s.state.Turn, t.text = &t.own, "" // t.text may still be the text of an interrupted turn
	t.useState(&t.own)
	t.write.clean = false
	t.emit(Event{Kind: EventTurnStart})
}

// useState makes state the state of the turn.
func (t *turn) useState(state *TurnState) {
	t.write.usage = state.Usage
	if state != &t.own { // a resumed turn: its hooks may have run before, and a commit may have failed
		t.snap.Resumes(state.ID)
		t.agent.addUnstored(t.session.id, state)
		t.wishes.recallChildren(state.Children)
		if t.lineage != nil {
			t.lineage.catchUp(state)
		}
	}
	t.state = state
	t.enterStep(state.Step)
	t.followTurn(state)
	if t.queue.begun != nil {
		t.queue.begun(state.ID)
	}
}

// enterStep makes step the current step of the turn.
func (t *turn) enterStep(step int) {
	t.scope = t.newScope()
	*t.scope = hook.Scope{Session: t.session.id, Turn: t.state.ID, Step: step, Agent: t.agent.opts.Name}
}

// validParts returns an error for parts that a user message cannot have.
func validParts(parts []Part) error {
	for i, p := range parts {
		switch {
		case p.Type == PartText && !utf8.ValidString(p.Text):
			return fmt.Errorf("part %d: the text is not UTF-8", i)
		case p.Type == PartMedia && (p.Media == nil || p.Media.MIME == "" || len(p.Media.Data) == 0 && p.Media.URL == ""):
			return fmt.Errorf("part %d: an image or a file needs a MIME type, and data or a URL", i)
		case p.Type != PartText && p.Type != PartMedia:
			return fmt.Errorf("part %d: a user message can have only text, images and files, not %q", i, p.Type)
		}
	}
	return nil
}
