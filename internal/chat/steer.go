package chat

import (
	"context"
	"errors"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/belay-run/belay"
)

// steerer is a session whose running turn takes messages, such as a *belay.Session.
type steerer interface {
	Steer(ctx context.Context, text string, parts ...belay.Part) error
}

var _ steerer = (*belay.Session)(nil)

// steered is a message that the running turn has not taken yet.
type steered struct {
	id   int
	text string
}

// steeredMsg means that the turn has taken a message, or why it has not.
type steeredMsg struct {
	id  int
	err error
}

// whileWorking handles a message that is sent while a turn runs. It reaches the model at the
// next step, or waits for the end of the turn, as the user chose. Commands always wait.
func (m *model) whileWorking(text string) tea.Cmd {
	if !m.steers || !m.opening.steers || strings.HasPrefix(text, "/") || strings.HasPrefix(text, "!") {
		m.queue = append(m.queue, text)
		return nil
	}
	m.messages++
	id := m.messages
	m.steered = append(m.steered, steered{id, text})
	parts := m.attached(text)
	return func() tea.Msg { m.host.steer(id, text, parts...); return nil }
}

// steeredOr removes a message that the turn has taken. If the turn has ended first, it sends the
// message as the next one, or puts it back into the input after an abort.
func (m *model) steeredOr(msg steeredMsg) tea.Cmd {
	at := slices.IndexFunc(m.steered, func(s steered) bool { return s.id == msg.id })
	if at < 0 {
		return nil
	}
	text := m.steered[at].text
	m.steered = slices.Delete(m.steered, at, at+1)
	switch {
	case msg.err == nil:
	case !errors.Is(msg.err, belay.ErrNotSteered):
		m.note(m.look.bad.Render("✗"), msg.err.Error())
	case m.working && !m.aborting:
		m.queue = append(m.queue, text)
	case m.working, m.stopped:
		m.editor.set(strings.TrimSpace(text + "\n" + m.editor.text()))
	default:
		return m.submit(text)
	}
	return nil
}

// steerHint says what enter does while a turn runs, and how to change that.
func (m *model) steerHint() string {
	switch {
	case !m.opening.steers:
		return "enter queues"
	case m.steers:
		return "enter steers, ctrl+s to queue"
	default:
		return "enter queues, ctrl+s to steer"
	}
}

// steer passes a message to the running turn.
func (r *runner) steer(id int, text string, parts ...belay.Part) {
	s, ok := r.session.(steerer)
	if !ok {
		r.tell(steeredMsg{id, belay.ErrNotSteered})
		return
	}
	r.turns.Go(func() { r.tell(steeredMsg{id, s.Steer(r.ctx, text, parts...)}) })
}
