package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/visible"
)

// quiet is how long the user must not type before a question accepts keys. Otherwise keys
// that were meant for the input would answer the question.
const quiet = 700 * time.Millisecond

// askMsg asks the user a question. reply must have room for one decision.
type askMsg struct {
	question belay.Question
	advice   Advice
	reply    chan<- belay.Decision
}

func (q *askMsg) plan() bool { return IsPlan(&q.question) }

// withdrawMsg means that a question no longer needs an answer.
type withdrawMsg struct{ id string }

// desk holds the open questions, the first one first.
type desk struct {
	waiting []askMsg
	armed   bool   // the first question accepts keys
	typing  draft  // what the user is typing for the first question
	saved   string // the input that was set aside, because the question has the keys
	fault   string // why the typed answer is invalid
}

// draft says what the user is typing as an answer.
type draft int

const (
	draftNone    draft = iota
	draftReason        // the reason of a denial
	draftSession       // nothing: enter allows for this session
	draftPattern       // a pattern for calls to allow
	draftAnswer        // the answer to a question that needs text
)

// asked adds a question.
func (m *model) asked(q askMsg) {
	m.desk.waiting = append(m.desk.waiting, q)
	if c := m.find(q.question.Run, &belay.CallPart{ID: q.question.Call}); c != nil {
		c.waits = true
	}
	m.arm()
}

// fewLines is the height that the view always leaves for a question.
const fewLines = 5

// arm lets the first question accept keys, after the user has paused typing.
func (m *model) arm() {
	was := m.desk.armed
	m.desk.armed = len(m.desk.waiting) > 0 && (was || m.now.Sub(m.pressed) >= quiet)
	if m.desk.armed && !was {
		m.setAside()
	}
	if m.desk.armed && m.desk.waiting[0].advice.words && m.desk.typing == draftNone {
		m.typed(draftAnswer, "")
		if text := visible.All(m.desk.waiting[0].question.Reason); strings.Count(text, "\n") > fewLines {
			m.say(kindLine, m.look.dim.Render("the whole question:"))
			m.append(kindLine, strings.Split(text, "\n")...)
		}
	}
}

// withdrawn removes a question that no longer needs an answer.
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

// next shows the next question. The user must pause typing again before this question
// accepts keys.
func (m *model) next() {
	m.restore()
	m.desk.armed = false
	m.pressed = m.now
}

// allow answers the first question: it allows the call, with a scope.
func (m *model) allow(scope belay.ApprovalScope) tea.Cmd {
	return m.decide(belay.Decision{Allow: true, Scope: scope})
}

// deny answers the first question: it denies the call.
func (m *model) deny(reason string) tea.Cmd { return m.decide(belay.Decision{Reason: reason}) }

// inWords answers the first question with text. An empty text means no answer.
func (m *model) inWords(text string) tea.Cmd {
	return m.decide(belay.Decision{Allow: strings.TrimSpace(text) != "", Reason: strings.TrimSpace(text)})
}

// allowLike answers the first question: it allows the call and all calls that the pattern
// covers. An empty pattern means the suggested one. If the pattern is invalid, allowLike
// only shows why.
func (m *model) allowLike(pattern string) tea.Cmd {
	advice := &m.desk.waiting[0].advice
	if pattern == "" {
		pattern = advice.Pattern
	}
	if advice.Check != nil {
		if err := advice.Check(pattern); err != nil {
			m.desk.fault = err.Error()
			return nil
		}
	}
	return m.allow(belay.ApprovalScope{Kind: belay.ScopePattern, Pattern: pattern})
}

// decide sends the decision on the first question.
func (m *model) decide(d belay.Decision) tea.Cmd {
	q := m.desk.waiting[0]
	m.desk.waiting = m.desk.waiting[1:]
	m.next()
	if c := m.find(q.question.Run, &belay.CallPart{ID: q.question.Call}); c != nil {
		c.waits, c.since = false, m.now
	}
	d.Approval, d.Hash, d.By = q.question.ID, q.question.Hash, m.person
	return func() tea.Msg { q.reply <- d; return nil }
}

// setAside empties the input for the keys of the question.
func (m *model) setAside() {
	if m.editor.text() != "" {
		m.desk.saved = m.editor.whole()
		m.editor.set("")
	}
}

// restore puts what was set aside back into the input.
func (m *model) restore() {
	m.untype()
	if m.desk.saved != "" {
		m.editor.set(m.desk.saved + m.editor.text())
		m.desk.saved = ""
	}
}

// typed lets the user type an answer to the first question.
func (m *model) typed(what draft, text string) {
	m.setAside()
	m.desk.typing, m.desk.fault = what, ""
	m.editor.set(text)
}

// untype drops what was typed as an answer.
func (m *model) untype() {
	if m.desk.typing != draftNone {
		m.desk.typing, m.desk.fault = draftNone, ""
		m.editor.set("")
	}
}

// answerKey handles a key for the first question. It reports whether it used the key. Keys of
// the question answer only while the input is empty, so that a word does not: a letter that is
// no key of the question begins a message, and then all letters belong to the message. What
// allows more than this call needs enter, so that "stop" allows nothing.
func (m *model) answerKey(key, text string) (tea.Cmd, bool) {
	d := &m.desk
	switch {
	case !d.armed || len(d.waiting) == 0:
		return nil, false
	case d.typing == draftReason && key == "enter":
		return m.deny(m.editor.text()), true
	case d.typing == draftSession && key == "enter":
		return m.allow(belay.ApprovalScope{Kind: belay.ScopeSession}), true
	case d.typing == draftPattern && key == "enter":
		return m.allowLike(m.editor.text()), true
	case d.typing == draftAnswer && key == "enter":
		return m.inWords(m.editor.text()), true
	case d.typing == draftAnswer && key == "esc":
		return m.inWords(""), true
	case d.typing != draftNone && key == "esc":
		m.untype()
		return nil, true
	case d.typing == draftSession && text != "": // s was the first letter of a message
		m.restore()
		m.editor.insert("s")
		return nil, false
	case d.typing != draftNone:
		d.fault = ""
		return nil, false // the editor gets the key
	case m.editor.text() != "" && key == "esc":
		m.setAside()
		return nil, true
	case m.editor.text() != "":
		return nil, false
	case key == "y" || key == "Y":
		return m.allow(belay.ApprovalScope{}), true
	case (key == "s" || key == "S") && !d.waiting[0].plan():
		m.typed(draftSession, "")
		return nil, true
	case (key == "p" || key == "P") && !d.waiting[0].plan() && d.waiting[0].advice.Pattern != "":
		m.typed(draftPattern, d.waiting[0].advice.Pattern)
		return nil, true
	case key == "n" || key == "N":
		m.typed(draftReason, "")
		return nil, true
	case key == "esc":
		return m.deny(""), true
	case key == "v" || key == "V":
		m.whole(&d.waiting[0])
		return nil, true
	case strings.TrimSpace(text) != "":
		m.restore()
		return nil, false
	default:
		return nil, true // a question ignores all other keys
	}
}

// questionView returns the first question in at most this many lines.
func (m *model) questionView(most int) []string {
	if len(m.desk.waiting) == 0 {
		return nil
	}
	q := &m.desk.waiting[0].question
	if m.desk.waiting[0].advice.words {
		return m.inquiryView(q, most)
	}
	advice := &m.desk.waiting[0].advice
	head := Head(q, advice)
	if n := len(m.desk.waiting); n > 1 {
		head += fmt.Sprintf(" (1 of %d)", n)
	}
	lines := each(m.look.warn.Bold(true), wrapped(head, m.width-1))
	if c := advice.Change; c != nil && c.Diff != "" {
		lines[len(lines)-1] += m.counted(c)
	}
	if !m.desk.waiting[0].plan() {
		for _, why := range Why(q, advice) {
			lines = append(lines, indented(why, "  ", m.width-1)...)
		}
	}
	body := m.proposal(q, advice, false)
	keys := m.questionKeys()
	room := max(most-len(lines)-len(keys)-1, 2)
	if len(body) > room { // the change matters more than the lines around it
		body = m.proposal(q, advice, true)
	}
	if len(body) > room {
		rest := fmt.Sprintf("  … %s more: v shows all", many(len(body)-room+1, "line"))
		body = append(body[:room-1:room-1], m.look.warn.Render(short(rest, m.width-1)))
	}
	lines = append(lines, body...)
	for _, line := range keys {
		lines = append(lines, m.keyed(line))
	}
	return lines
}

// counted returns how many lines a change adds and removes, if there is room after the
// question.
func (m *model) counted(c *Change) string {
	if m.width < 60 {
		return ""
	}
	return "  " + m.look.added.Render(fmt.Sprintf("+%d", c.Added)) + " " + m.look.removed.Render(fmt.Sprintf("−%d", c.Removed))
}

// inquiryView returns a question that needs text, in at most this many lines.
func (m *model) inquiryView(q *belay.Question, most int) []string {
	head := "The agent asks"
	if q.Depth > 0 {
		head = subagentNamed(visible.Clean(q.Agent), q.Depth) + " asks"
	}
	if n := len(m.desk.waiting); n > 1 {
		head += fmt.Sprintf(" (1 of %d)", n)
	}
	lines := []string{m.look.warn.Bold(true).Render(short(head, m.width-1))}
	var body []string
	for line := range strings.SplitSeq(visible.All(q.Reason), "\n") {
		body = append(body, indented(line, "  ", m.width-1)...)
	}
	keys := m.questionKeys()
	if room := max(most-len(lines)-len(keys), 2); len(body) > room {
		rest := fmt.Sprintf("  … %s more", many(len(body)-room+1, "line"))
		body = append(body[:room-1:room-1], m.look.warn.Render(short(rest, m.width-1)))
	}
	lines = append(lines, body...)
	return append(lines, each(m.look.dim, keys)...)
}

// answerKeys are the keys that hints begin with.
var answerKeys = []string{"y", "s", "p", "n", "v", "esc", "enter", "ctrl+c"}

// keyed draws a line of hints, with the keys before their meanings.
func (m *model) keyed(line string) string {
	hints := strings.Split(line, " · ")
	for i, hint := range hints {
		if key, rest, ok := strings.Cut(hint, " "); ok && slices.Contains(answerKeys, key) {
			hints[i] = m.look.accent.Bold(true).Render(key) + m.look.dim.Render(" "+rest)
		} else {
			hints[i] = m.look.dim.Render(hint)
		}
	}
	return strings.Join(hints, m.look.dim.Render(" · "))
}

// asks reports whether the keys answer a question, and nothing can be typed.
func (m *model) asks() bool {
	d := &m.desk
	return len(d.waiting) > 0 && d.armed && d.typing == draftNone && m.editor.text() == ""
}

// questionKeys returns the lines that explain how to answer.
func (m *model) questionKeys() []string {
	d := &m.desk
	switch {
	case !d.armed:
		return wrapped("stop typing for a moment, then answer", m.width-1)
	case d.waiting[0].advice.words:
		return m.packed("type your answer", "enter send", "esc no answer")
	case d.typing == draftReason:
		if d.waiting[0].plan() {
			return m.packed("what should change?", "enter send", "esc back")
		}
		return m.packed("reason (optional)", "enter deny", "esc back")
	case d.typing == draftSession:
		return m.packed("enter allow for this session", "esc back")
	case d.fault != "":
		return wrapped("invalid pattern: "+visible.All(d.fault), m.width-1)
	case d.typing == draftPattern:
		return m.packed("enter allow all calls like this for this session", "esc back")
	case m.editor.text() != "":
		return m.packed("enter send the message", "esc set it aside and answer")
	}
	if d.waiting[0].plan() {
		return m.packed("y approve and begin", "n change it: say how", "esc deny", "v all", "ctrl+c abort")
	}
	keys := []string{"y once", "s this session"}
	if pattern := d.waiting[0].advice.Pattern; pattern != "" {
		keys = append(keys, "p all like "+short(visible.All(pattern), max(m.width-14, 8)))
	}
	return m.packed(append(keys, "n deny and say why", "esc deny", "v all", "ctrl+c abort")...)
}

// packed joins hints to as few lines as fit the width. It breaks only hints that are wider
// than a line.
func (m *model) packed(hints ...string) []string {
	var lines []string
	for _, hint := range hints {
		last := len(lines) - 1
		if last >= 0 && ansi.StringWidth(lines[last])+3+ansi.StringWidth(hint) < m.width {
			lines[last] += " · " + hint
			continue
		}
		lines = append(lines, wrapped(hint, m.width-1)...)
	}
	return lines
}

// original returns the model's input of a call, if a hook rewrote it, and otherwise nil.
func (m *model) original(q *belay.Question) json.RawMessage {
	if c := m.find(q.Run, &belay.CallPart{ID: q.Call}); c != nil && c.part.Final != nil && !bytes.Equal(c.part.Input, q.Input) {
		return c.part.Input
	}
	return nil
}

// proposal shows what a call would do. If brief is true, it leaves out the lines of a file that do
// not change.
func (m *model) proposal(q *belay.Question, a *Advice, brief bool) []string {
	original := m.original(q)
	if plan := planOf(q); plan != "" && original == nil {
		return append(slices.Clone(m.md.lines(plan)), "")
	}
	var lines []string
	if original != nil {
		lines = append(lines, m.look.warn.Render(short("  a hook rewrote the input:", m.width-1)))
	}
	proposed := Proposal(q, a, original)
	if brief {
		proposed = slices.DeleteFunc(proposed, func(l Line) bool { return l.Mark == ' ' && l.Number > 0 })
	}
	return append(lines, m.marked(proposed)...)
}

// whole prints the whole input of a call, and the whole change.
func (m *model) whole(q *askMsg) {
	if q.plan() && m.original(&q.question) == nil {
		m.say(kindLine, m.look.dim.Render("the whole plan:"))
		m.append(kindLine, m.md.lines(planOf(&q.question))...)
		return
	}
	m.say(kindLine, m.look.dim.Render(short("the whole input of "+visible.Clean(q.question.Tool)+":", m.width-1)))
	input := Proposal(&q.question, &Advice{}, m.original(&q.question))
	if c := q.advice.Change; c != nil && c.Diff != "" && !c.Cut {
		input = Proposal(&q.question, &q.advice, m.original(&q.question))
	}
	m.append(kindLine, m.marked(input)...)
}

// marked draws the lines of a proposal. A long line continues below, after its mark. The
// numbers of lines are shown if there is room.
func (m *model) marked(proposal []Line) []string {
	widest := 0
	for _, l := range proposal {
		if l.Number > 0 && m.width >= 60 {
			widest = max(widest, len(strconv.Itoa(l.Number)))
		}
	}
	var lines []string
	for _, l := range proposal {
		number := ""
		if widest > 0 && l.Mark != '!' {
			number = strings.Repeat(" ", widest+1)
			if l.Number > 0 {
				number = fmt.Sprintf("%*d ", widest, l.Number)
			}
		}
		style, prefix := m.look.dim, "  "+number+string(l.Mark)+" "
		switch l.Mark {
		case '+':
			style = m.look.added
		case '-':
			style = m.look.removed
		case '!':
			style = m.look.warn
		case '$':
			style = lipgloss.NewStyle()
		case ' ':
			if widest == 0 {
				style = lipgloss.NewStyle()
			}
		case '@':
			prefix = "  "
		}
		lines = append(lines, each(style, hardPrefixed(l.Text, prefix, m.width-1))...)
	}
	return lines
}

// hardPrefixed breaks a text at the width without changing its spaces. It adds a prefix to
// each line.
func hardPrefixed(text, prefix string, width int) []string {
	pieces := strings.Split(ansi.Hardwrap(text, max(width-ansi.StringWidth(prefix), 1), true), "\n")
	for i := range pieces {
		pieces[i] = prefix + pieces[i]
	}
	return pieces
}
