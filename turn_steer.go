package belay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// ErrNotSteered says that a message did not reach the running turn: no turn of the session runs
// in this process, or the turn ended first. The message is not stored. Send it with Run.
var ErrNotSteered = errors.New("belay: no turn of the session took the message: send it with Run")

// Steer adds a user's message to the running turn of the session. The model gets it with its
// next request, after the results of the calls that run now. If the model was about to end the
// turn, the turn continues. Hooks of user.prompt.submit see the message and may change or block
// it. Directives and skills in it stay text.
//
// Steer returns nil when the message is stored. Until then ctx withdraws the message. The error
// is [ErrNotSteered] if the turn ends, parks or fails before that.
func (s *Session) Steer(ctx context.Context, text string, parts ...Part) error {
	if err := checkInput(text, parts); err != nil {
		return fmt.Errorf("steer session %q: %w", s.id, err)
	}
	m := &steered{text: text, parts: parts, done: make(chan error, 1)}
	if !s.steering.add(m) {
		return fmt.Errorf("session %q: %w", s.id, ErrNotSteered)
	}
	var err error
	select {
	case err = <-m.done:
	case <-ctx.Done():
		if s.steering.remove(m) {
			return context.Cause(ctx)
		}
		err = <-m.done // the turn has taken it
	}
	if err != nil {
		return fmt.Errorf("steer session %q: %w", s.id, err)
	}
	return nil
}

// steered is a message for a running turn.
type steered struct {
	text  string
	parts []Part
	said  submitted
	done  chan error // has room for one error; nil means that the message is stored
}

// steering holds the messages for the running turn of a session.
type steering struct {
	mu      sync.Mutex
	open    bool // a turn runs and takes messages
	waiting []*steered
}

// add adds a message. It reports whether a turn runs.
func (s *steering) add(m *steered) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		s.waiting = append(s.waiting, m)
	}
	return s.open
}

// remove withdraws a message. It reports whether no turn has taken the message.
func (s *steering) remove(m *steered) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.waiting)
	s.waiting = slices.DeleteFunc(s.waiting, func(other *steered) bool { return other == m })
	return len(s.waiting) < before
}

// set says whether a turn takes messages. It returns the messages that wait.
func (s *steering) set(open bool) []*steered {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.waiting
	s.open, s.waiting = open, nil
	return waiting
}

// takeSteered takes the messages for this turn, and lets the hooks of user.prompt.submit check
// them. Accepted messages are stored with the next step. It returns how the turn ends if a
// hook failed.
func (t *turn) takeSteered() EndReason {
	waiting := t.session.steering.set(true)
	for i, m := range waiting {
		m.said = submit(m.text, m.parts)
		end := t.submit(&m.said)
		switch {
		case end == EndBlocked: // only the message is blocked, not the turn
			m.done <- fmt.Errorf("%s blocked the message: %s", t.end.by, t.end.why)
			t.end.by, t.end.why = "", ""
		case end != "":
			refuseSteered(waiting[i:])
			return end
		case m.said.reply != nil:
			m.done <- fmt.Errorf("%s answered the message instead of the model: %s", m.said.by, m.said.reply.Text)
		default:
			t.steered = append(t.steered, m)
		}
	}
	return ""
}

// commitSteered stores the accepted messages.
func (t *turn) commitSteered() error {
	if len(t.steered) == 0 {
		return nil
	}
	var messages []*Message
	for _, m := range t.steered {
		messages = append(messages, m.said.messages(nil, nil)...)
	}
	if err := t.commit(messages, nil, nil); err != nil {
		return err
	}
	for _, m := range t.steered {
		m.done <- nil
	}
	t.steered = nil
	for _, m := range messages {
		t.emit(Event{Kind: EventSteered, Text: m.Text(), Message: m})
	}
	return nil
}

// endSteering refuses the messages that the turn has not stored.
func (t *turn) endSteering() {
	refuseSteered(append(t.steered, t.session.steering.set(false)...))
	t.steered = nil
}

func refuseSteered(messages []*steered) {
	for _, m := range messages {
		m.done <- ErrNotSteered
	}
}
