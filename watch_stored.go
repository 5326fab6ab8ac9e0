package belay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
)

// position is a position in the events of a session. [Event.Position] is its text.
type position struct {
	// message is the number of the last message for which all events were yielded.
	message int64
	// part is how many events of the next message were yielded.
	part int
	// ended identifies the turn_end that was yielded after this message: see endMark. It is
	// empty if none was yielded.
	ended string
}

func (p position) String() string {
	text := strconv.FormatInt(p.message, 10)
	switch {
	case p.ended != "":
		text += "-end-" + p.ended
	case p.part > 0:
		text += "-" + strconv.Itoa(p.part)
	}
	return text
}

// parsePosition reads the text of a position.
func parsePosition(text string) (p position, err error) {
	number, rest, more := strings.Cut(text, "-")
	if p.message, err = strconv.ParseInt(number, 10, 64); err != nil || p.message < 0 {
		return p, ErrCursor
	}
	if ended, ok := strings.CutPrefix(rest, "end-"); ok && ended != "" {
		p.ended = ended
		return p, nil
	}
	if more {
		if p.part, err = strconv.Atoi(rest); err != nil || p.part < 1 {
			return p, ErrCursor
		}
	}
	return p, nil
}

// endMark identifies the end of a turn by the number of the turn and its end reason.
func endMark(turns int, reason EndReason) string { return strconv.Itoa(turns) + "-" + string(reason) }

// watchStored yields the events of one session after a position: first events of stored
// messages, then new events. Events of messages always come from the store, so that none is
// missing and none is repeated. All other events come from the running turns.
//
// With an agent, it yields the events of turns that this agent runs. If a is nil, it yields
// the events of all agents, and follows the store: it also yields the events of messages that
// other processes store.
func (es *Events) watchStored(ctx context.Context, a *Agent, store Store, last <-chan struct{}, opts *WatchOptions) iter.Seq2[Event, error] {
	at, err := parsePosition(opts.After)
	if err == nil && opts.Session == "" {
		err = errors.New("a position needs a session: set WatchOptions.Session")
	}
	if err != nil {
		return func(yield func(Event, error) bool) { yield(Event{}, fmt.Errorf("watch after %q: %w", opts.After, err)) }
	}
	w := newWatcher(a, opts)
	es.add(w)
	stop := context.AfterFunc(ctx, func() { es.remove(w) })
	return func(yield func(Event, error) bool) {
		defer stop()
		defer es.remove(w)
		s := &storedWatch{source: es, watcher: w, store: store, session: opts.Session, at: at, ctx: ctx, yield: yield}
		if a != nil {
			s.agent = a.opts.Name
		} else if turns, ok := store.(TurnStore); ok {
			defer s.follow(turns, w)()
		}
		if err := s.run(w, last); err != nil && ctx.Err() == nil {
			yield(Event{}, fmt.Errorf("watch session %q after %q: %w", s.session, s.at, err))
		}
	}
}

// storedWatch is one call of watchStored.
type storedWatch struct {
	source  *Events
	watcher *watcher
	store   Store
	agent   string // the name in events of stored messages
	session string
	at      position
	ctx     context.Context //nolint:containedctx // it lives as long as the call
	yield   func(Event, error) bool
	left    bool       // the consumer has left, or ctx has ended
	turn    string     // the turn of the last message
	failed  chan error // the error that ended follow; nil if only one agent is watched
}

// run yields events until the consumer leaves, ctx ends or the agent is closed.
func (s *storedWatch) run(w *watcher, last <-chan struct{}) error {
	if err := s.catchUp(true); err != nil || s.left {
		return err
	}
	for {
		// Read these two before the waiting events. Then the events include all those that
		// were emitted before the change was stored, and the end of a turn that runs here.
		changed := w.changed.Swap(false)
		elsewhere := changed && !s.source.runs(s.session)
		if !elsewhere && s.failed != nil { // the turn that runs here says what it stores
			changed = false
		}
		events, missed := w.take()
		if err := s.passAll(events, missed); err != nil || s.left {
			return err
		}
		if stored := w.stored.Load(); stored > s.at.message {
			if err := s.fill(stored); err != nil || s.left {
				return err
			}
			continue
		}
		if changed {
			if err := s.catchUp(elsewhere); err != nil || s.left {
				return err
			}
			continue
		}
		if len(events) > 0 {
			continue
		}
		select {
		case <-w.wake:
		case err := <-s.failed:
			return err
		case <-s.ctx.Done():
			return nil
		case <-last:
			if !w.waits() {
				return nil
			}
		}
	}
}

// passAll yields events of running turns. If events were dropped, it first yields the
// events of stored messages and reports how many events were dropped.
func (s *storedWatch) passAll(events []*Event, missed int) error {
	if missed > 0 {
		if err := s.catchUp(true); err != nil || s.left {
			return err
		}
		if s.left = s.ctx.Err() != nil || !s.yield(Event{}, &MissedError{missed}); s.left {
			return nil
		}
	}
	for _, e := range events {
		if err := s.pass(e); err != nil || s.left {
			return err
		}
	}
	return nil
}

// send yields an event with the current position.
func (s *storedWatch) send(e Event) {
	e.Position = s.at.String()
	s.left = s.ctx.Err() != nil || !s.yield(e, nil)
}

// pass yields an event of a running turn. It skips the event if fill yields it from the
// store, or if later stored events were already yielded.
func (s *storedWatch) pass(e *Event) error {
	if e.Session != s.session { // an event of a subagent
		s.send(*e)
		return nil
	}
	if e.stored > s.at.message {
		if err := s.fill(e.stored); err != nil || s.left {
			return err
		}
	}
	if e.stored < s.at.message || s.at.ended != "" && e.Turn == s.turn && e.Kind != EventTurnStart {
		return nil // the stored events after this one were already yielded
	}
	switch e.Kind {
	case EventModelResponse, EventToolUse, EventToolUseResult, EventCompactionEnd, EventSteered:
		if !e.unstored {
			return nil
		}
		s.at.ended = ""
	case EventTurnStart:
		if e.Turn != s.turn { // a new turn: its turn_start is made from the stored user message
			return nil
		}
		s.at.ended = "" // a parked turn continues
	case EventTurnEnd:
		s.at.ended = endMark(e.turns, e.End.Reason)
	default: // the position stays after the turn_end, which must not be repeated
	}
	s.send(*e)
	return nil
}

// catchUp yields the events of stored messages. If the last turn has ended or is parked, it
// also yields its turn_end, unless ends is false: the turn then runs in this process, and its
// own turn_end follows.
func (s *storedWatch) catchUp(ends bool) error {
	info, err := s.info()
	if err != nil {
		return err
	}
	until := int64(math.MaxInt64)
	if info != nil {
		if s.at.message > info.Last { // the position is from another session, or the session was deleted and created again
			return fmt.Errorf("%w: the session has only %d messages", ErrCursor, info.Last)
		}
		until = settledUntil(&info.State, info.Last)
	}
	if err := s.fill(until); err != nil || s.left || info == nil || !ends {
		return err
	}
	reason := info.State.endReason()
	mark := endMark(info.State.Turns, reason)
	if reason == "" || s.at.ended == mark {
		return nil
	}
	end := &Turn{ID: s.turn, Reason: reason}
	if e := info.State.Ending; e != nil && reason != EndParked {
		end.By, end.Why = e.By, e.Why
	}
	if store, ok := s.store.(ListStore); ok && reason == EndParked {
		end.ID = info.State.Turn.ID
		for q, err := range Questions(s.ctx, store, ApprovalFilter{Session: s.session}) {
			if err != nil {
				return err
			}
			end.Waits = append(end.Waits, q)
		}
	}
	s.at.ended = mark
	s.send(Event{Kind: EventTurnEnd, Time: info.Changed, Session: s.session, Turn: end.ID, Agent: info.State.Agent, End: end})
	return nil
}

// endReason returns how the last turn ended, or EndParked if it is parked. It returns "" if
// the turn is running or was interrupted, and if there was no turn yet.
func (s SessionState) endReason() EndReason {
	switch {
	case s.Turn == nil:
		return s.Last
	case s.Turn.Parked:
		return EndParked
	default:
		return ""
	}
}

// Position returns the position after all events that are stored, including the end of the
// last turn. Pass it to WatchOptions.After to get only later events.
func (i SessionInfo) Position() string {
	at := position{message: settledUntil(&i.State, i.Last)}
	if reason := i.State.endReason(); reason != "" {
		at.ended = endMark(i.State.Turns, reason)
	}
	return at.String()
}

// info returns the SessionInfo of the session. It returns nil if the session does not
// exist, or if the store cannot list sessions.
func (s *storedWatch) info() (*SessionInfo, error) {
	store, ok := s.store.(ListStore)
	if !ok {
		return nil, nil
	}
	for info, err := range store.Sessions(s.ctx, SessionFilter{ID: s.session}) {
		if err != nil {
			return nil, err
		}
		if info.ID == s.session {
			return &info, nil
		}
	}
	return nil, nil
}

// settledUntil returns the number of the last message that will not change any more. A
// response whose gates have not answered may still get rewritten inputs.
func settledUntil(state *SessionState, last int64) int64 {
	if state.Turn != nil && state.Turn.Unjudged {
		return last - 1
	}
	return last
}

// fill yields the events of stored messages, up to and including the message with the
// number until.
func (s *storedWatch) fill(until int64) error {
	var calls map[string]*CallPart // the calls of the last response
	messages, recent := s.read(max(s.at.message, 1), until)
	for m, err := range messages {
		if errors.Is(err, ErrNotFound) {
			return nil // the first turn of the session has not begun
		}
		if err != nil {
			return err
		}
		if m.Seq > until {
			return nil
		}
		if recent {
			s.turn = m.Turn // read has set the agent
		} else if err := s.enterTurn(m.Turn); err != nil {
			return err
		}
		events := s.events(m, calls)
		calls = callsByID(m)
		if m.Seq <= s.at.message {
			continue
		}
		for i := s.at.part; i < len(events); i++ {
			if s.at = (position{message: m.Seq - 1, part: i + 1}); i == len(events)-1 {
				s.at = position{message: m.Seq}
			}
			if s.send(events[i]); s.left {
				return nil
			}
		}
		s.at = position{message: m.Seq}
	}
	return nil
}

// read returns the stored messages from the number first on. It reads the store only if this
// process has not just stored all messages up to the number last: see tellStored.
func (s *storedWatch) read(first, last int64) (messages iter.Seq2[*Message, error], recent bool) {
	stored, agent := s.watcher.between(first, last)
	if stored == nil {
		return s.store.Read(s.ctx, s.session, first-1), false
	}
	if s.failed != nil { // all agents are watched
		s.agent = agent
	}
	return func(yield func(*Message, error) bool) {
		for _, m := range stored {
			if !yield(m, nil) {
				return
			}
		}
	}, true
}

// enterTurn sets the current turn to the turn of the next message. If the turn changes and all
// agents are watched (failed is not nil), it also sets the agent to the one that ran the most
// recent turn of the session. The store keeps only that name.
func (s *storedWatch) enterTurn(turn string) error {
	if s.failed != nil && turn != s.turn {
		info, err := s.info()
		if err != nil {
			return err
		}
		if info != nil {
			s.agent = info.State.Agent
		}
	}
	s.turn = turn
	return nil
}

// events returns the events of a stored message. calls are the calls of the previous
// message.
func (s *storedWatch) events(m *Message, calls map[string]*CallPart) []Event {
	of := Event{Time: m.Time, Session: s.session, Turn: m.Turn, Step: m.Step, Agent: s.agent}
	with := func(kind EventKind, set func(e *Event)) Event {
		e := of
		e.Kind = kind
		set(&e)
		return e
	}
	var events []Event
	switch {
	case m.IsCompaction:
		events = append(events, with(EventCompactionEnd, func(e *Event) { e.Message = m }))
	case m.Kind == KindUser && m.Step > 0: // the message of the turn itself comes before its first step
		events = append(events, with(EventSteered, func(e *Event) { e.Message, e.Text = m, m.Text() }))
	case m.Kind == KindUser:
		events = append(events, with(EventTurnStart, func(e *Event) { e.Message = m }))
	case m.Kind == KindAssistant:
		events = append(events, with(EventModelResponse, func(e *Event) { e.Message = m }))
		for _, c := range m.Calls() {
			events = append(events, with(EventToolUse, func(e *Event) { e.Call = c }))
		}
	case m.Kind == KindResults:
		for i := range m.Parts {
			r := m.Parts[i].Result
			if r == nil {
				continue
			}
			call := calls[r.Call]
			if call == nil {
				call = &CallPart{ID: r.Call, Tool: r.Tool}
			}
			events = append(events, with(EventToolUseResult, func(e *Event) { e.Call, e.Result = call, &r.Result }))
		}
	}
	return events
}

// callsByID returns the calls of a message by their ids.
func callsByID(m *Message) map[string]*CallPart {
	calls := make(map[string]*CallPart)
	for _, c := range m.Calls() {
		calls[c.ID] = c
	}
	return calls
}
