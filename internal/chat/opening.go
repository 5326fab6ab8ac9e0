package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/visible"
)

// replayed is how many of the last messages the chat shows when it opens a session.
const replayed = 6

// opening is the state of a session when the chat begins.
type opening struct {
	session  string
	messages []*belay.Message // the last messages
	more     int              // how many messages came before them
	usage    belay.Usage
	unended  string // a note about a turn that has not ended, or ""
	calls    string // a remark for the open calls of that turn
	trouble  []string
	history  []string
	steers   bool // a running turn takes messages
}

// open reads the state of a session. Errors do not stop the chat: open stores them in
// trouble, and greet shows them.
func open(ctx context.Context, session Session, store Records) *opening {
	o := &opening{session: session.ID()}
	_, o.steers = session.(steerer)
	after := int64(0)
	if store != nil {
		if info := o.lookUp(ctx, store); info != nil {
			after = max(info.Last-replayed, 0)
		}
	}
	messages := session.Messages(ctx)
	if store != nil {
		messages = store.Read(ctx, o.session, after)
	}
	o.more = int(after)
	o.read(messages)
	if store == nil && len(o.messages) > 0 && !final(o.messages[len(o.messages)-1]) {
		o.unended = "the last turn may be incomplete: /resume tries to continue it"
	}
	return o
}

// open reads the state of a session, and the mode of its open turn.
func (c *Chat) open(ctx context.Context, s Session) *opening {
	o := open(ctx, s, c.opts.Store)
	if err := c.recall(ctx, s); err != nil {
		o.trouble = append(o.trouble, "cannot read the mode of the session: "+err.Error())
	}
	return o
}

// recall finds the mode of the open turn of a session.
func (c *Chat) recall(ctx context.Context, s Session) error {
	if c.opts.Controls.Recall == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return c.opts.Controls.Recall(ctx, s.ID())
}

// lookUp finds the session in the store.
func (o *opening) lookUp(ctx context.Context, store Records) *belay.SessionInfo {
	for info, err := range store.Sessions(ctx, belay.SessionFilter{Prefix: o.session}) {
		if err != nil {
			o.trouble = append(o.trouble, "cannot read the state of the session: "+err.Error())
			return nil
		}
		if info.ID != o.session {
			continue
		}
		o.usage = info.State.Usage
		switch turn := info.State.Turn; {
		case info.Held:
			o.unended, o.calls = "another process has this session open: end that process first", "running elsewhere"
		case turn != nil && turn.Parked:
			o.unended, o.calls = "the last turn waits for a decision: /resume continues it, /abandon ends it", "waits"
		case turn != nil:
			o.unended, o.calls = "the last turn was interrupted: /resume continues it, a new message ends it", "interrupted"
		}
		return &info
	}
	return nil
}

// read keeps the last messages.
func (o *opening) read(messages iter.Seq2[*belay.Message, error]) {
	for message, err := range messages {
		if errors.Is(err, belay.ErrNotFound) {
			return
		}
		if err != nil {
			o.trouble = append(o.trouble, "cannot read the transcript: "+err.Error())
			return
		}
		o.messages = append(o.messages, message)
		if len(o.messages) > replayed {
			o.messages = o.messages[1:]
			o.more++
		}
	}
}

// final reports whether a message can be the last one of a turn.
func final(message *belay.Message) bool {
	return message.Role == belay.RoleAssistant && len(message.Calls()) == 0 || message.IsCompaction
}

// greet shows the last messages, the errors of open, and whether a turn is open.
func (m *model) greet() {
	m.say(kindText, m.look.dim.Render(short(fmt.Sprintf("session %s · /help lists commands", visible.Clean(m.opening.session)), m.width-1)))
	if m.opening.more > 0 {
		m.append(kindText, m.look.dim.Render(short(fmt.Sprintf("%s before these are not shown", many(m.opening.more, "message")), m.width-1)))
	}
	for _, message := range m.opening.messages {
		m.replay(message)
	}
	m.drop(cmp.Or(m.opening.calls, "no result")) // none of these calls runs in this process
	for _, text := range m.opening.trouble {
		m.note(m.look.bad.Render("✗"), text)
	}
	if m.opening.unended != "" {
		m.note(m.look.warn.Render("∎"), m.opening.unended)
	}
	m.opening.messages = nil
}

func (m *model) replay(message *belay.Message) {
	switch {
	case message.IsCompaction:
		m.note(m.look.accent.Render("∙"), "the conversation was summarized here")
	case message.Kind == belay.KindUser:
		text := message.Text()
		if message.PreModifiedText != nil {
			text = *message.PreModifiedText
		}
		m.say(kindUser, m.userLines(text)...)
	case message.Kind == belay.KindAssistant:
		if text := message.Text(); strings.TrimSpace(text) != "" {
			m.answer = text
			var s stream
			m.blocks(append(s.add(text), s.flush()...))
		}
		for _, part := range message.Calls() {
			m.calls = append(m.calls, &call{part: part})
		}
	case message.Kind == belay.KindResults:
		for i := range message.Parts {
			if r := message.Parts[i].Result; r != nil {
				m.replayResult(r)
			}
		}
	}
}

func (m *model) replayResult(r *belay.ResultPart) {
	c := m.find("", &belay.CallPart{ID: r.Call})
	if c == nil { // the call is older than the messages that were read
		c = &call{part: &belay.CallPart{ID: r.Call, Tool: r.Tool}}
	}
	mark := m.look.good.Render("✓")
	if r.IsError {
		mark = m.look.bad.Render("✗")
	}
	m.say(kindLine, m.line(mark, m.title(c), string(r.Class)))
	for i := range m.calls {
		if m.calls[i] == c {
			m.calls = append(m.calls[:i:i], m.calls[i+1:]...)
			break
		}
	}
}
