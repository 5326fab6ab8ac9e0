package chat

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/belay-run/belay/internal/visible"
)

// Directive is a slash command of the agent or of the chat.
type Directive struct {
	// Name is the name without its slash.
	Name string
	// About describes the command in one line.
	About string
}

// own are the commands of the chat. A message is such a command only if it contains nothing
// else. All other text goes to the agent.
var own = []Directive{
	{"help", "show keys and commands"},
	{"resume", "resume an interrupted or waiting turn"},
	{"abandon", "abandon an interrupted or waiting turn"},
	{"compact", "summarize the conversation to free space"},
	{"copy", "copy the last answer to the clipboard, as markdown"},
	{"clear", "clear the screen; the session keeps everything"},
	{"quit", "quit; you can continue the session later"},
}

// Commands returns the commands of the chat. They win over other commands with the same
// name.
func Commands() []Directive { return slices.Clone(own) }

// known returns the commands of the chat and of the agent, for completion.
func known(more []Directive) []Directive {
	all := slices.Clone(own)
	for _, d := range more {
		d.Name = strings.TrimPrefix(d.Name, "/")
		if d.Name != "" && !slices.ContainsFunc(all, func(o Directive) bool { return o.Name == d.Name }) {
			all = append(all, d)
		}
	}
	return all
}

func namesOf(directives []Directive) []string {
	names := make([]string, len(directives))
	for i, d := range directives {
		names[i] = d.Name
	}
	return names
}

// isOwn reports whether a text is a command of the chat.
func isOwn(text string) bool {
	name, ok := strings.CutPrefix(text, "/")
	return ok && slices.ContainsFunc(own, func(d Directive) bool { return d.Name == name })
}

func (m *model) command(text string) tea.Cmd {
	switch text {
	case "/help":
		m.help()
	case "/quit":
		return m.leave()
	case "/clear":
		m.said = kindNothing
		return tea.ClearScreen
	case "/copy":
		if m.answer == "" {
			m.note(m.look.dim.Render("∙"), "there is no answer to copy yet")
			return nil
		}
		m.note(m.look.dim.Render("∙"), "the last answer is on the clipboard, if your terminal allows it")
		return tea.SetClipboard(m.answer)
	case "/resume":
		return m.begin("resuming", m.host.resume)
	case "/abandon":
		return m.begin("abandoning", m.host.abandon)
	case "/compact":
		return m.begin("summarizing", m.host.compact)
	}
	return nil
}

// begin starts an activity, unless another one is running.
func (m *model) begin(doing string, start func(n int)) tea.Cmd {
	if m.working {
		m.note(m.look.warn.Render("∙"), "wait for the end of the turn, or abort it with ctrl+c")
		return nil
	}
	m.work(doing)
	n := m.number
	return func() tea.Msg { start(n); return nil }
}

// keyHelp lists the keys that /help shows.
var keyHelp = []Directive{
	{"enter", "send"},
	{"alt+enter, ctrl+j", "new line"},
	{"up, down", "input history"},
	{"tab", "complete a command"},
	{"ctrl+t", "show or hide thinking"},
	{"ctrl+c", "abort the turn; when idle, press twice to quit"},
	{"ctrl+d", "quit, if nothing is typed"},
}

func (m *model) help() {
	m.say(kindText, m.table(keyHelp, "", m.width)...)
	m.append(kindText, "")
	m.append(kindText, m.table(m.known, "/", m.width)...)
	m.append(kindText, "", m.look.dim.Render(short("Any other text goes to the agent, with or without a slash.", m.width-1)))
}

// table formats names and descriptions in two columns.
func (m *model) table(rows []Directive, prefix string, width int) []string {
	widest := 0
	for _, d := range rows {
		widest = max(widest, len(prefix+d.Name))
	}
	widest = min(widest, width/2)
	var lines []string
	for _, d := range rows {
		name := short(prefix+d.Name, widest)
		name += strings.Repeat(" ", max(widest-len([]rune(name)), 0))
		lines = append(lines, m.look.accent.Render(name)+"  "+short(visible.Clean(d.About), width-widest-4))
	}
	return lines
}
