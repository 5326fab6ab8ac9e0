package belay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/belay-run/belay/hook"
)

// Errors about sessions. Use errors.Is.
var (
	// ErrBusy says that the session is running another turn.
	ErrBusy = errors.New("belay: the session is running another turn")
	// ErrParked says that the session's last turn is parked. Decide its approvals and call
	// Resume, or call Abandon.
	ErrParked = errors.New("belay: the last turn is parked: decide its approvals and resume it, or abandon it")
	// ErrNoTurn says that there is no turn to resume.
	ErrNoTurn = errors.New("belay: there is no turn to resume: start one with Run or Turn")
	// ErrClosed says that the session or its agent was closed. Agent.Session opens a closed
	// session again.
	ErrClosed = errors.New("belay: the session or its agent was closed")
)

// Session is a conversation. It runs one turn at a time, and is safe for concurrent use.
type Session struct {
	agent *Agent
	id    string
	slot  chan struct{} // full while a turn runs

	// Only the goroutine that holds the slot uses the fields below.

	seq      uint64 // the number of the last event
	ids      callIDs
	told     string // the last turn whose end phases have fired
	epoch    int64
	last     int64      // the number of the last message
	messages []*Message // the messages that the model gets
	underway *openTurn  // nil between turns
	state    SessionState
	model    *namedModel // replaces the agent's model; nil: the agent's model
	held     bool        // this process holds the session in the store
	started  bool        // session.start has fired
	around   *hook.Scope // see scope

	steering steering // messages for the running turn
	closed   atomic.Bool
	stored   atomic.Int64           // the number of the last message that will not change; read without the slot
	helper   atomic.Pointer[helper] // has nothing to do; nil: make a new one
	view     sync.Mutex             // guards state.Usage for readers that do not hold the slot
}

// openTurn is the stored state of an open turn's calls and approvals.
type openTurn struct {
	calls []CallRecord // the calls of the last response
	asked []Approval   // the approvals at the time when the session was opened
}

// ID returns the session's id.
func (s *Session) ID() string { return s.id }

// Usage returns the stored usage of the session's turns: tokens and cost.
func (s *Session) Usage() Usage {
	s.view.Lock()
	defer s.view.Unlock()
	return s.state.Usage
}

// Run runs a turn. It sends the user's text, images and files to the model, and yields
// events until the turn is over. After each event, the turn waits until the caller has
// taken it. Leaving the loop aborts the turn; the loop statement then returns when the end
// phases of the turn are done.
//
// The last event is turn_end. An error follows only if the runtime failed or the turn was
// aborted. Each range over the returned sequence runs a new turn.
func (s *Session) Run(ctx context.Context, text string, parts ...Part) iter.Seq2[Event, error] {
	return s.stream(ctx, func(t *turn) EndReason { return t.user(text, parts) })
}

// Turn runs a turn and returns when the turn is over. It returns an error if the runtime
// failed or the turn was aborted. Even then it returns a turn. The turn has no ID if it could
// not begin, for example because of ErrBusy.
func (s *Session) Turn(ctx context.Context, text string, parts ...Part) (*Turn, error) {
	return s.take(ctx, func(t *turn) EndReason { return t.user(text, parts) })
}

// Resume continues a turn that is parked, or that was running when its process ended. If
// approvals are still undecided, the turn parks again. The error is ErrNoTurn if there is
// no such turn, and a [*MissingToolError] if the agent does not have the tools of the calls
// that must run now.
func (s *Session) Resume(ctx context.Context) iter.Seq2[Event, error] {
	return s.stream(ctx, (*turn).resume)
}

// Abandon ends a turn that is parked, or that was running when its process ended. Calls
// without a result get the result "aborted". Abandon returns ErrNoTurn if there is no such
// turn.
func (s *Session) Abandon(ctx context.Context) (*Turn, error) {
	return s.take(ctx, func(t *turn) EndReason {
		if t.session.state.Turn == nil {
			return t.fail(ErrNoTurn)
		}
		return t.abandonOpen("")
	})
}

// Await reads a stream to its end and returns the turn, as [Session.Turn] does.
func Await(stream iter.Seq2[Event, error]) (*Turn, error) {
	var end *Turn
	for event, err := range stream {
		if err != nil {
			if end == nil {
				end = notBegun(err)
			}
			return end, err
		}
		if event.End != nil && event.Depth == 0 {
			end = event.End
		}
	}
	return end, nil
}

// Compact summarizes the context now. It does nothing if there is nothing to summarize: the
// session has no messages, only a summary, or only messages that the model has not answered
// yet.
func (s *Session) Compact(ctx context.Context) error {
	_, err := s.take(ctx, func(t *turn) EndReason {
		t.quiet = true
		if err := t.compactNow(); err != nil {
			return t.fail(err)
		}
		return EndTurn
	})
	return err
}

// SetReminders changes the session's settings for reminders, from the next turn on.
func (s *Session) SetReminders(ctx context.Context, settings ReminderSettings) error {
	if !utf8.ValidString(settings.Standing) {
		return errors.New("set reminders: the standing reminder is not UTF-8")
	}
	_, err := s.take(ctx, func(t *turn) EndReason {
		t.quiet = true
		s.state.Reminders = settings
		if err := t.commit(nil, nil, nil); err != nil {
			return t.fail(err)
		}
		return EndTurn
	})
	return err
}

// Messages returns the whole transcript, oldest message first, including messages that were
// summarized.
func (s *Session) Messages(ctx context.Context) iter.Seq2[*Message, error] {
	return s.agent.store.Read(ctx, s.id, 0)
}

// Fork makes a new session with the same labels. The new session begins with the messages
// of this session, up to and including the message with the number at. Calls without a
// result get the result "aborted".
func (s *Session) Fork(ctx context.Context, id string, at int64) (*Session, error) {
	var copied []*Message
	for m, err := range s.agent.store.Read(ctx, s.id, 0) {
		if err != nil {
			return nil, fmt.Errorf("fork %q: %w", s.id, err)
		}
		if m.Seq > at {
			break
		}
		copied = append(copied, m)
	}
	if at < 1 || int64(len(copied)) < at {
		return nil, fmt.Errorf("fork %q: %w: the session has no message %d", s.id, ErrNotFound, at)
	}
	visible := Visible(copied)
	if last := visible[len(visible)-1]; len(last.Calls()) > 0 { // a summary may come after the calls
		results := &Message{Seq: at + 1, Turn: last.Turn, Step: last.Step, Role: RoleUser, Kind: KindResults, Time: last.Time}
		for _, c := range last.Calls() {
			results.Parts = append(results.Parts, resultPart(c, Failed(ClassAborted, "This call has no result: the session was forked before the call ended.")))
		}
		copied = append(copied, results)
	}
	stored, err := s.agent.store.Open(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("fork %q to %q: %w", s.id, id, err)
	}
	if stored.Last > 0 || !stored.State.blank() {
		err = fmt.Errorf("session %q already exists: use another id", id)
	} else {
		err = s.agent.store.Commit(ctx, &Commit{
			Session: id, Epoch: stored.Epoch, Messages: copied, State: &SessionState{ForkedFrom: &ForkPoint{s.id, at}},
		})
	}
	if err = errors.Join(err, s.agent.store.Release(ctx, id, stored.Epoch)); err == nil {
		err = s.copyLabels(ctx, id)
	}
	if err != nil {
		return nil, fmt.Errorf("fork %q to %q: %w", s.id, id, err)
	}
	return s.agent.Session(id), nil
}

// Close closes the session in this process, so that another process can open it. If the
// session was opened, session.end fires first. Close waits for a running turn. The
// session stays in the store, and you can open it again.
func (s *Session) Close(ctx context.Context) (err error) {
	if err := s.acquire(ctx, false); err != nil {
		if errors.Is(err, ErrClosed) {
			return nil
		}
		return fmt.Errorf("close session %q: %w", s.id, err)
	}
	defer func() { <-s.slot }()
	s.closed.Store(true)
	defer s.agent.forget(s) // after the store has released the session
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	defer func() { // release the session even if a hook of session.end fails or panics
		if s.held {
			s.held = false
			err = errors.Join(err, s.agent.store.Release(ctx, s.id, s.epoch))
		}
		if err != nil {
			err = fmt.Errorf("close session %q: %w", s.id, err)
		}
	}()
	if s.started {
		return s.fireEnd(ctx)
	}
	return nil
}

// scope returns the scope of hooks that run outside a turn. Only the holder of the slot
// calls it.
func (s *Session) scope() *hook.Scope {
	if s.around == nil {
		s.around = &hook.Scope{Session: s.id, Agent: s.agent.opts.Name}
	}
	return s.around
}

// fireEnd fires session.end. The caller passes a context that is not cancelled.
func (s *Session) fireEnd(ctx context.Context) (err error) {
	snap := s.agent.hooks.Snapshot()
	defer func(ctx context.Context) { err = errors.Join(err, snap.Release(ctx)) }(ctx)
	if l := lineageOf(ctx); l != nil { // a child session: the turn of its parent is still running
		if err := snap.Inherit(l.parent.snap); err != nil {
			return fmt.Errorf("the turn of the parent agent has ended: %w", err)
		}
	}
	if !SessionEnd.Active(snap) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.agent.opts.Limits.End)
	defer cancel()
	scope := s.scope()
	outcome, err := SessionEnd.Dispatch(ctx, snap, SessionClosed{newInput(scope, sessionClosed{Reason: s.state.Last, Turns: s.state.Turns})})
	s.agent.reportFailures(scope, outcome.Diagnostics)
	if len(outcome.Output.shown) > 0 && s.held { // the model gets the output when the session is opened again
		s.state.Pending = appendAside(s.state.Pending, Aside{Note: outcome.Output})
		err = errors.Join(err, s.agent.store.Commit(ctx, &Commit{Session: s.id, Epoch: s.epoch, State: &s.state}))
	}
	return err
}

// acquire takes the session's slot. If another turn has the slot, acquire waits, or returns
// ErrBusy if refuse is set.
func (s *Session) acquire(ctx context.Context, refuse bool) error {
	select {
	case s.slot <- struct{}{}:
	default:
		if refuse {
			return ErrBusy
		}
		select {
		case s.slot <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if s.closed.Load() {
		<-s.slot
		return ErrClosed
	}
	return nil
}

// acquireTurn takes the session's slot for a turn.
func (s *Session) acquireTurn(ctx context.Context) error {
	if err := s.acquire(ctx, s.agent.opts.RefuseBusy); err != nil {
		return err
	}
	if !s.agent.takesTurns(ctx) {
		<-s.slot
		return ErrClosed
	}
	return nil
}

// open reads the session from the store, if this process does not hold the session. After
// a failed commit, release has given up the hold, so the next open reads the stored
// state.
func (s *Session) open(ctx context.Context) error {
	if s.held {
		return nil
	}
	if s.id == "" {
		return errors.New("open session: the session id is empty: set one")
	}
	stored, err := s.agent.store.Open(ctx, s.id)
	if errors.Is(err, ErrHeld) && s.epoch != 0 && s.agent.store.Release(ctx, s.id, s.epoch) == nil {
		stored, err = s.agent.store.Open(ctx, s.id) // this agent still held the session: an earlier release had failed
	}
	if err != nil {
		return err // the errors of stores name the session
	}
	s.held = true
	s.ids = callIDs{}
	s.epoch, s.last, s.messages = stored.Epoch, stored.Last, stored.Messages
	s.stored.Store(settledUntil(&stored.State, s.last))
	s.underway = nil
	if stored.State.Turn != nil {
		s.underway = &openTurn{stored.Calls, stored.Approvals}
	}
	s.view.Lock()
	defer s.view.Unlock()
	s.state = stored.State
	return nil
}

// release releases the session if this process holds it. The next turn reads the session
// from the store again.
func (s *Session) release(ctx context.Context) {
	if s.held {
		s.held = false
		if err := s.agent.store.Release(ctx, s.id, s.epoch); err != nil {
			s.agent.opts.Logger.WarnContext(ctx, "the store did not release the session", "session", s.id, "error", err)
		}
	}
}

// addUsage adds to the usage of the session's turns.
func (s *Session) addUsage(u Usage) {
	s.view.Lock()
	defer s.view.Unlock()
	s.state.Usage = s.state.Usage.add(u)
}

// source returns how the session was opened.
func (s *Session) source() string {
	switch {
	case s.state.Turn != nil && !s.state.Turn.Parked:
		return "recovered"
	case s.state.Turns > 0 || s.state.Turn != nil:
		return "resumed"
	case s.state.ForkedFrom != nil:
		return "forked"
	case s.last > 0:
		return "resumed"
	default:
		return "new"
	}
}

// SetModel switches to another model, from the next turn on. The session keeps its tools
// and messages. When any process opens the session later, [Options.Models] finds the model
// by its name.
func (s *Session) SetModel(ctx context.Context, model Model) error {
	n, err := s.agent.usable(model)
	if err != nil {
		return fmt.Errorf("set model of session %q: %w", s.id, err)
	}
	_, err = s.take(ctx, func(t *turn) EndReason {
		t.quiet = true
		s.keepModel(n)
		if err := t.commit(nil, nil, nil); err != nil {
			return t.fail(err)
		}
		return EndTurn
	})
	return err
}

// keepModel stores a model as the session's own. If it is the agent's model, keepModel
// clears the session's own model.
func (s *Session) keepModel(n *namedModel) {
	s.model, s.state.Model = n, n.info.Name
	if same(n.Model, s.agent.model.Model) {
		s.model, s.state.Model = nil, ""
	}
}
