package chat

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/belay-run/belay/internal/visible"
)

// Directive is a word that begins with a slash and that the agent, or this chat,
// knows.
type Directive struct {
	// Name is the word, without its slash.
	Name string
	// About says in a line what it does.
	About string
}

// own are the chat's own commands. They count only where they are all that was
// typed; everything else is for the agent.
var own = []Directive{
	{"help", "keys and commands"},
	{"resume", "go on with a turn that was interrupted or that waits"},
	{"abandon", "give such a turn up"},
	{"compact", "sum the conversation up, to make room"},
	{"copy", "put the last answer on the clipboard, as markdown"},
	{"clear", "clear the screen; the session keeps everything"},
	{"quit", "leave; you can resume the session later"},
}

// Commands are the chat's own commands, which come before all other names.
func Commands() []Directive { return slices.Clone(own) }

// known are all words to complete: the chat's own, and those of the agent.
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

// command does what a command of the chat says.
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
		return m.begin("goes on", m.host.resume)
	case "/abandon":
		return m.begin("is given up", m.host.abandon)
	case "/compact":
		return m.begin("sums up", m.host.compact)
	}
	return nil
}

// begin starts what only one can be under way of.
func (m *model) begin(doing string, start func(n int)) tea.Cmd {
	if m.working {
		m.note(m.look.warn.Render("∙"), "wait until the turn is over, or abort it with ctrl+c")
		return nil
	}
	m.work(doing)
	n := m.number
	return func() tea.Msg { start(n); return nil }
}

// keyHelp are the keys, for the help.
var keyHelp = []Directive{
	{"enter", "send"},
	{"alt+enter, ctrl+j", "new line"},
	{"up, down", "what was typed before"},
	{"tab", "complete a command"},
	{"ctrl+t", "show thinking in full, or in one line"},
	{"ctrl+c", "abort the turn; when idle, twice leaves"},
	{"ctrl+d", "leave, if nothing is typed"},
}

func (m *model) help() {
	m.say(kindText, m.table(keyHelp, "", m.width)...)
	m.append(kindText, "")
	m.append(kindText, m.table(m.known, "/", m.width)...)
	m.append(kindText, "", m.look.dim.Render(short("Any other text, with or without a slash, is for the agent.", m.width-1)))
}

// table sets names and what they are about in columns of a width.
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
