package chat

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/belay-run/belay/internal/visible"
)

var spinnerFrames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

func (m *model) spinner() string {
	return spinnerFrames[int(m.now.Sub(m.since)/(100*time.Millisecond))%len(spinnerFrames)]
}

// View returns the last frame that Update drew.
func (m *model) View() tea.View { return m.frame }

// draw draws the view: the model's unfinished text, running calls, the question and the
// input. It never fills the whole screen, see page.
func (m *model) draw() tea.View {
	if m.height == 0 {
		return tea.NewView("")
	}
	most := max(m.height-m.page(), 1)
	m.editor.area.Placeholder = invitation
	if m.asks() || m.desk.typing == draftSession {
		m.editor.area.Placeholder = "answer with a key above"
	}
	input, below := strings.Split(m.editor.area.View(), "\n"), m.belowInput()
	news := append(m.queued(), m.activity()...)
	fixed := len(input) + len(below) + len(news) + 1
	news = append(m.questionView(max(most-fixed, 5)), news...)
	news = append(news, m.pickerView()...)
	lines := m.live()
	if room := max(most-len(input)-len(below)-len(news)-1, 0); len(lines) > room {
		lines = lines[len(lines)-room:]
	}
	if len(lines) > 0 || m.said != kindNothing {
		news = append([]string{""}, news...)
	}
	if m.working {
		// A finished block leaves the view when the block is printed above the view.
		// Blank lines replace the block, so that the input line does not move.
		height := len(lines) + len(news) + len(input) + len(below)
		m.floor = min(max(m.floor, height), most)
		lines = append(lines, make([]string, max(m.floor-height, 0))...)
	}
	lines = append(lines, news...)
	row := len(lines)
	lines = append(append(lines, input...), below...)
	cut := max(len(lines)-most, 0)
	tall := m.tall.fit(len(lines)-cut, most, m.now, m.frames())
	lines = append(lines, make([]string, max(tall-len(lines)+cut, 0))...)
	view := tea.NewView(strings.Join(lines[cut:], "\n"))
	if c := m.editor.area.Cursor(); c != nil && row-cut+c.Y >= 0 {
		c.Y += row - cut
		view.Cursor = c
	}
	view.ReportFocus = true
	view.WindowTitle = "belay: " + m.opening.session
	return view
}

// farewell returns the last view. It ends with a line break, for the output of other
// programs.
func (m *model) farewell() tea.View {
	return tea.NewView(m.look.dim.Render(short(m.status(), m.width-1)) + "\n")
}

// live returns the last line of the unfinished thinking, the unfinished text and the calls.
func (m *model) live() []string {
	var lines []string
	if thought := m.step.thought.String(); thought != "" {
		last := thought[max(strings.LastIndexByte(strings.TrimSpace(whole(thought)), '\n'), 0):]
		lines = append(lines, m.look.dim.Render("∴ "+short(visible.Clean(whole(last)), m.width-4)))
	}
	if open := m.step.text.open(); strings.TrimSpace(open) != "" {
		if m.said != kindNothing && !m.step.text.glued {
			lines = append(lines, "")
		}
		lines = append(lines, m.md.lines(open)...)
	}
	for _, c := range m.calls {
		if c.result != nil {
			lines = append(lines, m.doneLine(c))
		} else {
			lines = append(lines, m.openLine(c))
			for _, line := range c.tail {
				lines = append(lines, m.look.dim.Render("  │ "+cutTo(line, m.width-6)))
			}
		}
	}
	return lines
}

// activity returns a line about the running activity, if any.
func (m *model) activity() []string {
	switch {
	case m.working && m.leaving:
		return []string{m.look.warn.Render(short("aborting the turn, then quitting · ctrl+c quits now", m.width-1))}
	case m.working && m.aborting:
		return []string{m.look.warn.Render(short("aborting · ctrl+c again quits without waiting", m.width-1))}
	case m.working && len(m.desk.waiting) > 0 && m.desk.armed: // the agent waits, and the question is shown
		return nil
	case m.working:
		text := m.doing + " " + took(m.now.Sub(m.since))
		if m.editor.area.Value() != "" {
			text += " · " + m.steerHint()
		}
		text += " · ctrl+c to abort"
		return []string{m.look.accent.Render(m.spinner()) + " " + m.look.dim.Render(short(text, m.width-3))}
	default:
		return nil
	}
}

// queued shows the messages that will be sent after this turn.
func (m *model) queued() []string {
	const most = 3
	var lines []string
	for _, s := range m.steered {
		lines = append(lines, m.look.dim.Render("at the next step: "+short(visible.Clean(s.text), m.width-20)))
	}
	for i, text := range m.queue {
		if i == most {
			lines = append(lines, m.look.dim.Render("  and "+many(len(m.queue)-i, "more message")))
			break
		}
		lines = append(lines, m.look.dim.Render("queued: "+short(visible.Clean(text), m.width-10)))
	}
	return lines
}

// belowInput returns the first of these that there is: the completions, that the clipboard is
// being read, the hint that another ctrl+c quits, the status line.
func (m *model) belowInput() []string {
	if lines := m.popupView(); lines != nil {
		return lines
	}
	if m.pasting {
		return []string{m.look.dim.Render(short("reading the clipboard", m.width-1))}
	}
	if m.asking {
		return []string{m.look.warn.Render(short("press ctrl+c again to quit", m.width-1))}
	}
	return []string{m.look.dim.Render(short(m.status(), m.width-1))}
}

// status returns the footer: the mode, the session, the model, how full its context is, and what
// the session has used.
func (m *model) status() string {
	var words []string
	if mode := m.mode(); mode != "" {
		words = append(words, mode)
	}
	words = append(words, m.opening.session)
	if m.answers != "" {
		words = append(words, m.answers)
	}
	if meter := m.meter(); meter != "" {
		words = append(words, meter)
	}
	if u := m.total(); u.Tokens() > 0 {
		words = append(words, bill(u))
	}
	return ansi.Strip(visible.Clean(strings.Join(words, " · ")))
}
