package belay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/belay-run/belay/hook"
)

// Questions about sessions that callers ask with errors.Is.
var (
	// ErrBusy says that the session is taking another turn.
	ErrBusy = errors.New("belay: the session is taking another turn")
	// ErrParked says that the session's last turn waits for someone: decide its
	// approvals and call Resume, or call Abandon.
	ErrParked = errors.New("belay: the last turn is parked: decide what it waits for and resume it, or abandon it")
	// ErrNoTurn says that there is no turn to go on with.
	ErrNoTurn = errors.New("belay: no turn is under way: there is nothing to resume, take one with Run or Turn")
	// ErrClosed says that the session, or its agent, was closed. Agent.Session
	// opens a session again.
	ErrClosed = errors.New("belay: it was closed")
)

// Session is a conversation. It takes one turn at a time, and is safe for
// concurrent use. Between turns it costs its messages and little more.
type Session struct {
	agent *Agent
	id    string
	slot  chan struct{} // held by whoever takes a turn

	// What follows belongs to the holder of the slot.

	seq      uint64 // of the last event
	ids      callIDs
	told     string // the last turn whose end phases have fired
	epoch    int64
	last     int64      // the number of the last message
	messages []*Message // what the model sees
	underway *openTurn  // nil between turns
	state    SessionState
	model    *namedModel // in the place of the agent's
	held     bool        // the store has given us the session
	started  bool        // session.start has fired

	closed atomic.Bool
	view   sync.Mutex // for those who do not hold the slot: guards writing state.Usage
}

// openTurn is what the store knows of the calls of a turn under way.
type openTurn struct {
	calls []Call     // of the last response
	asked []Approval // when the session was opened
}

// ID is the session's id.
func (s *Session) ID() string { return s.id }

// Usage is the tokens and the cost of the session's turns, as far as they are
// stored.
func (s *Session) Usage() Usage {
	s.view.Lock()
	defer s.view.Unlock()
	return s.state.Usage
}

// Run takes a turn: it sends the user's text, with images and files if any, and
// yields events until the turn is over. The consumer sets the pace. Leaving the
// loop aborts the turn, and returns when its end phases are done.
//
// The last event is turn_end. An error comes after it, and only if the runtime
// failed or the turn was aborted. Each range over what Run returns takes a turn of
// its own.
func (s *Session) Run(ctx context.Context, text string, parts ...Part) iter.Seq2[Event, error] {
	return s.stream(ctx, func(t *turn) EndReason { return t.user(text, parts) })
}

// Turn takes a turn and returns when it is over. An error means that the runtime
// failed or that the turn was aborted; whatever came of the turn is returned too.
func (s *Session) Turn(ctx context.Context, text string, parts ...Part) (*Turn, error) {
	return s.take(ctx, func(t *turn) EndReason { return t.user(text, parts) })
}

// Resume goes on with a turn that is parked, or that was under way when its
// process ended. If what it waits for is not decided, it ends parked again.
// ErrNoTurn: there is none. [*MissingToolError]: calls that are to run are of tools that
// the agent does not have now.
func (s *Session) Resume(ctx context.Context) iter.Seq2[Event, error] {
	return s.stream(ctx, (*turn).resume)
}

// Abandon ends a turn that is parked, or that was under way when its process
// ended: its open calls get aborted results. ErrNoTurn: there is none.
func (s *Session) Abandon(ctx context.Context) (*Turn, error) {
	return s.take(ctx, func(t *turn) EndReason {
		if t.session.state.Turn == nil {
			return t.failed(ErrNoTurn)
		}
		if err := t.abandon(); err != nil {
			return t.failed(err)
		}
		return cmp.Or(t.state.Ended, EndAborted)
	})
}

// Await takes the turn of a stream and returns it when it is over, as
// [Session.Turn] does.
func Await(stream iter.Seq2[Event, error]) (*Turn, error) {
	var end *Turn
	for event, err := range stream {
		if err != nil {
			return end, err
		}
		if event.End != nil && event.Depth == 0 {
			end = event.End
		}
	}
	return end, nil
}

// Compact sums the context up now.
func (s *Session) Compact(ctx context.Context) error {
	_, err := s.take(ctx, func(t *turn) EndReason {
		t.quiet = true
		if err := t.compact("forced"); err != nil {
			return t.failed(err)
		}
		return EndTurn
	})
	return err
}

// SetReminders changes how the session tells the model what hooks say. It holds
// from the next turn on.
func (s *Session) SetReminders(ctx context.Context, settings ReminderSettings) error {
	if !utf8.ValidString(settings.Standing) {
		return errors.New("set reminders: the standing reminder is not UTF-8")
	}
	_, err := s.take(ctx, func(t *turn) EndReason {
		t.quiet = true
		s.state.Reminders = settings
		if err := t.commit(nil, nil, nil); err != nil {
			return t.failed(err)
		}
		return EndTurn
	})
	return err
}

// Messages reads the whole transcript, oldest first: what was summed up too.
func (s *Session) Messages(ctx context.Context) iter.Seq2[*Message, error] {
	return s.agent.store.Read(ctx, s.id, 0)
}

// Fork makes a session that begins with this one's messages up to the one
// numbered at, and goes its own way. Calls that have no results by then get
// aborted ones.
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
		return nil, fmt.Errorf("fork %q: %w: it has no message %d", s.id, ErrNotFound, at)
	}
	visible := Visible(copied)
	if last := visible[len(visible)-1]; len(last.Calls()) > 0 { // a summary may stand behind them
		results := &Message{Seq: at + 1, Turn: last.Turn, Step: last.Step, Role: RoleUser, Kind: KindResults, Time: last.Time}
		for _, c := range last.Calls() {
			results.Parts = append(results.Parts, resultPart(c, Failed(ClassAborted, "The session was forked before this call was answered.")))
		}
		copied = append(copied, results)
	}
	stored, err := s.agent.store.Open(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("fork %q to %q: %w", s.id, id, err)
	}
	if stored.Last > 0 || !stored.State.blank() {
		err = fmt.Errorf("there is a session %q already", id)
	} else {
		err = s.agent.store.Commit(ctx, &Commit{
			Session: id, Epoch: stored.Epoch, Messages: copied, State: &SessionState{ForkedFrom: &ForkPoint{s.id, at}},
		})
	}
	if err = errors.Join(err, s.agent.store.Release(ctx, id, stored.Epoch)); err != nil {
		return nil, fmt.Errorf("fork %q to %q: %w", s.id, id, err)
	}
	return s.agent.Session(id), nil
}

// Close ends the session in this process: session.end fires if it was opened,
// and another process can take it. It waits for a turn under way. Nothing is
// lost: opening it again goes on where it stood.
func (s *Session) Close(ctx context.Context) (err error) {
	if err := s.acquire(ctx, closing); err != nil {
		if errors.Is(err, ErrClosed) {
			return nil
		}
		return fmt.Errorf("close session %q: %w", s.id, err)
	}
	defer func() { <-s.slot }()
	s.closed.Store(true)
	defer s.agent.forget(s) // when the store has it back
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.agent.opts.Limits.End)
	defer cancel()
	defer func() { // however the hooks of session.end come to their end
		if s.held {
			s.held = false
			err = errors.Join(err, s.agent.store.Release(context.WithoutCancel(ctx), s.id, s.epoch))
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

// fireEnd fires session.end.
func (s *Session) fireEnd(ctx context.Context) (err error) {
	snap := s.agent.hooks.Snapshot()
	defer func() { err = errors.Join(err, snap.Release(context.WithoutCancel(ctx))) }()
	if l := lineageOf(ctx); l != nil { // a child's, and its parent's turn is still under way
		if err := snap.Inherit(l.parent.snap); err != nil {
			return fmt.Errorf("the parent's turn is over: %w", err)
		}
	}
	if !SessionEnd.Active(snap) {
		return nil
	}
	scope := &hook.Scope{Session: s.id, Agent: s.agent.opts.Name}
	outcome, err := SessionEnd.Dispatch(ctx, snap, SessionClosed{newInput(scope, sessionClosed{Reason: s.state.Last, Turns: s.state.Turns})})
	s.agent.tellFailures(scope, outcome.Diagnostics)
	if len(outcome.Output.shown) > 0 && s.held { // the model is told when the session is opened again
		s.state.Pending = appendAside(s.state.Pending, Aside{Note: outcome.Output})
		err = errors.Join(err, s.agent.store.Commit(ctx, &Commit{Session: s.id, Epoch: s.epoch, State: &s.state}))
	}
	return err
}

// closing waits for the session as BusyQueue does, for the one who closes it.
const closing BusyMode = "closing"

// acquire takes the session for a turn.
func (s *Session) acquire(ctx context.Context, busy BusyMode) error {
	select {
	case s.slot <- struct{}{}:
	default:
		if busy == BusyRefuse {
			return ErrBusy
		}
		select {
		case s.slot <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if s.closed.Load() || busy != closing && !s.agent.takesTurns(ctx) {
		<-s.slot
		return ErrClosed
	}
	return nil
}

// open reads the session from the store, if that has not been done or a failed
// commit left doubt about what is there.
func (s *Session) open(ctx context.Context) error {
	if s.held {
		return nil
	}
	if s.id == "" {
		return errors.New("open session: it has no id: a session needs one, under which it is found again")
	}
	stored, err := s.agent.store.Open(ctx, s.id)
	if errors.Is(err, ErrHeld) && s.epoch != 0 && s.agent.store.Release(ctx, s.id, s.epoch) == nil {
		stored, err = s.agent.store.Open(ctx, s.id) // it was us: letting go had failed
	}
	if err != nil {
		return err // stores say which session it is
	}
	s.held = true
	s.ids = callIDs{}
	s.epoch, s.last, s.messages = stored.Epoch, stored.Last, stored.Messages
	s.underway = nil
	if stored.State.Turn != nil {
		s.underway = &openTurn{stored.Calls, stored.Approvals}
	}
	s.view.Lock()
	defer s.view.Unlock()
	s.state = stored.State
	return nil
}

// doubt lets go of the session after a commit that failed: what the store holds
// now is read anew by the next turn.
func (s *Session) doubt(ctx context.Context) {
	if s.held {
		s.held = false
		if err := s.agent.store.Release(ctx, s.id, s.epoch); err != nil {
			s.agent.opts.Logger.WarnContext(ctx, "the store did not release the session", "session", s.id, "error", err)
		}
	}
}

// spent adds to what the session's turns took.
func (s *Session) spent(u Usage) {
	s.view.Lock()
	defer s.view.Unlock()
	s.state.Usage = s.state.Usage.add(u)
}

// source says how the session was opened.
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

// SessionOpened is the input of session.start.
type SessionOpened struct{ input[sessionOpened] }

type sessionOpened struct {
	Source   string `json:"source" jsonschema:"new, resumed, forked or recovered"`
	Messages int    `json:"messages" jsonschema:"how many messages the transcript holds"`
}

// part tells one opening of a session from the next: its transcript grows.
func (s *sessionOpened) part() string { return s.Source + ":" + strconv.Itoa(s.Messages) }

// Source says how the session was opened: new, resumed, forked or recovered.
func (s SessionOpened) Source() string { return s.data().Source }

// Messages is how many messages the transcript holds.
func (s SessionOpened) Messages() int { return s.data().Messages }

// SessionClosed is the input of session.end.
type SessionClosed struct{ input[sessionClosed] }

type sessionClosed struct {
	Reason EndReason `json:"reason" jsonschema:"how the last turn ended"`
	Turns  int       `json:"turns" jsonschema:"how many turns were taken"`
}

func (s *sessionClosed) part() string { return strconv.Itoa(s.Turns) }

// Reason is how the last turn ended.
func (s SessionClosed) Reason() EndReason { return s.data().Reason }

// Turns is how many turns were taken.
func (s SessionClosed) Turns() int { return s.data().Turns }
