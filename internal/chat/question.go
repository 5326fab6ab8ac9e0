package chat

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/belay-run/belay"
)

// quiet is how long no key must have been pressed before a question takes keys:
// what was meant for the text must not answer it.
const quiet = 700 * time.Millisecond

// askMsg asks whether a call may run. The answer goes to reply, which takes one
// without waiting.
type askMsg struct {
	question belay.Question
	reply    chan<- belay.Decision
}

// withdrawMsg says that nobody waits for the answer any more.
type withdrawMsg struct{ id string }

// desk are the questions that wait for the person, the first one first.
type desk struct {
	waiting []askMsg
	armed   bool   // it takes keys
	denying bool   // the reason of a denial is being typed
	saved   string // what was being typed before that
}

// asked puts a question on the desk.
func (m *model) asked(q askMsg) {
	m.desk.waiting = append(m.desk.waiting, q)
	if c := m.find(&belay.CallPart{ID: q.question.Call}); c != nil {
		c.waits = true
	}
	m.arm()
}

// arm lets the first question take keys once nothing was typed for a while.
func (m *model) arm() {
	m.desk.armed = len(m.desk.waiting) > 0 && (m.desk.armed || m.now.Sub(m.pressed) >= quiet)
}

// withdrawn takes a question off the desk that nobody waits for.
func (m *model) withdrawn(id string) {
	at := slices.IndexFunc(m.desk.waiting, func(q askMsg) bool { return q.question.ID == id })
	if at < 0 {
		return
	}
	m.desk.waiting = slices.Delete(m.desk.waiting, at, at+1)
	if at == 0 {
		m.next()
	}
}

// next takes up the next question. A key that was on its way is not for it.
func (m *model) next() {
	m.undeny()
	m.desk.armed = false
	m.pressed = m.now
}

// decide answers the first question.
func (m *model) decide(allow bool, reason string) tea.Cmd {
	q := m.desk.waiting[0]
	m.desk.waiting = m.desk.waiting[1:]
	m.next()
	if c := m.find(&belay.CallPart{ID: q.question.Call}); c != nil {
		c.waits, c.since = false, m.now
	}
	d := belay.Decision{Approval: q.question.ID, Hash: q.question.Hash, Allow: allow, By: m.person, Reason: reason}
	return func() tea.Msg { q.reply <- d; return nil }
}

// undeny gives the editor back what it held before a reason was typed.
func (m *model) undeny() {
	if m.desk.denying {
		m.desk.denying = false
		m.editor.set(m.desk.saved)
	}
}

// answerKey handles a key while a question takes keys. It reports whether the key
// was for it.
func (m *model) answerKey(key string) (tea.Cmd, bool) {
	d := &m.desk
	switch {
	case !d.armed || len(d.waiting) == 0:
		return nil, false
	case d.denying && key == "enter":
		return m.decide(false, m.editor.text()), true
	case d.denying && key == "esc":
		m.undeny()
		return nil, true
	case d.denying:
		return nil, false // it is typed
	case key == "y" || key == "Y":
		return m.decide(true, ""), true
	case key == "n" || key == "N":
		d.denying, d.saved = true, m.editor.text()
		m.editor.set("")
		return nil, true
	case key == "esc":
		return m.decide(false, ""), true
	case key == "v" || key == "V":
		m.say(kindLine, m.look.dim.Render("the whole input of "+clean(d.waiting[0].question.Tool)+":"))
		m.append(kindLine, m.proposal(&d.waiting[0].question)...)
		return nil, true
	default:
		return nil, true // anything else would be a slip
	}
}

// questionView shows the first question in at most so many lines.
func (m *model) questionView(most int) []string {
	if len(m.desk.waiting) == 0 {
		return nil
	}
	q := &m.desk.waiting[0].question
	head := fmt.Sprintf("May %s run?", clean(q.Tool))
	if n := len(m.desk.waiting); n > 1 {
		head += fmt.Sprintf(" (1 of %d)", n)
	}
	lines := []string{m.look.warn.Bold(true).Render(short(head, m.width-1))}
	why := visible(q.Reason)
	if q.By != "" {
		why = strings.TrimSpace(why + " (asked by " + visible(q.By) + ")")
	}
	if why != "" {
		lines = append(lines, indented(why, "  ", m.width-1)...)
	}
	body := m.proposal(q)
	room := max(most-len(lines)-2, 2)
	if len(body) > room {
		rest := fmt.Sprintf("  … %s more: v shows the whole", many(len(body)-room+1, "line"))
		body = append(body[:room-1:room-1], m.look.warn.Render(short(rest, m.width-1)))
	}
	lines = append(lines, body...)
	return append(lines, m.look.dim.Render(short(m.questionKeys(), m.width-1)))
}

func (m *model) questionKeys() string {
	switch {
	case !m.desk.armed:
		return "one moment: you were typing"
	case m.desk.denying:
		return "type why, if you like · enter denies · esc goes back"
	default:
		return "y allow once · n deny, say why · esc deny · v view all · ctrl+c abort"
	}
}

// proposal shows the input that would run. Where it was rewritten, it shows what
// the model had asked for too.
func (m *model) proposal(q *belay.Question) []string {
	final := spelled(q.Input)
	var asked []string
	if c := m.find(&belay.CallPart{ID: q.Call}); c != nil && c.part.Final != nil && !bytes.Equal(c.part.Input, q.Input) {
		asked = spelled(c.part.Input)
	}
	var lines []string
	for _, l := range compared(asked, final) {
		style := m.look.dim
		switch l.mark {
		case '+':
			style = m.look.added
		case '-':
			style = m.look.removed
		}
		lines = append(lines, m.marked(style, l)...)
	}
	return lines
}

// marked breaks a line of a comparison; every piece carries its mark.
func (m *model) marked(style lipgloss.Style, l comparedLine) []string {
	mark := fmt.Sprintf("  %c ", l.mark)
	return each(style, hardPrefixed(l.text, mark, m.width-1))
}

// hardPrefixed breaks a text where it gets too long, so that spaces stay as they
// are, and puts a prefix in front of each piece.
func hardPrefixed(text, prefix string, width int) []string {
	pieces := hardWrapped([]string{text}, width-len(prefix))
	for i := range pieces {
		pieces[i] = prefix + pieces[i]
	}
	return pieces
}
