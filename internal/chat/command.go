package chat

import (
	"context"
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
	{"new", "begin a new session; the old one stays"},
	{"clear", "begin a new session on an empty screen"},
	{"resume", "continue an open turn, or choose another session"},
	{"sessions", "choose another session, with search and preview"},
	{"rewind", "go back to an earlier message, with the files as they were"},
	{"model", "choose another model"},
	{"mode", "choose how much may run without asking (shift+tab)"},
	{"jobs", "list commands in the background: look at their output, stop them"},
	{"add-dir", "let the agent use one more directory: /add-dir ../other"},
	{"cost", "show tokens, cost and how full the context is"},
	{"abandon", "abandon an interrupted or waiting turn"},
	{"compact", "summarize the conversation to free space"},
	{"copy", "copy the last answer to the clipboard, as markdown"},
	{"quit", "quit; you can continue the session later"},
}

// withArgument are the commands of the chat that may have an argument.
var withArgument = []string{"resume", "sessions", "mode", "add-dir"}

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

// isOwn reports whether a text is a command of the chat. /model with a name is a command of the
// agent.
func isOwn(text string) bool {
	name, argument := splitCommand(text)
	return name != "" && slices.ContainsFunc(own, func(d Directive) bool { return d.Name == name }) &&
		(argument == "" || slices.Contains(withArgument, name))
}

// splitCommand returns the name and the argument of a command.
func splitCommand(text string) (name, argument string) {
	text, ok := strings.CutPrefix(text, "/")
	if !ok {
		return "", ""
	}
	name, argument, _ = strings.Cut(text, " ")
	return name, strings.TrimSpace(argument)
}

func (m *model) command(text string) tea.Cmd {
	switch name, argument := splitCommand(text); name {
	case "help":
		m.help()
	case "quit":
		return m.leave()
	case "new":
		return m.move("/new", "", false)
	case "clear":
		return m.move("/clear", "", true)
	case "cost":
		m.cost()
	case "copy":
		return m.copyAnswer()
	case "resume":
		if argument == "" && (m.opening.unended != "" || m.controls.Sessions == nil) {
			return m.begin("resuming", m.host.resume)
		}
		return m.chooseSession(argument)
	case "sessions":
		return m.chooseSession(argument)
	case "rewind":
		return m.chooseMessage()
	case "model":
		return m.chooseModel()
	case "mode":
		if argument != "" {
			m.setMode(argument)
			return nil
		}
		return m.chooseMode()
	case "jobs":
		return m.chooseJob()
	case "add-dir":
		m.addDir(argument)
	case "abandon":
		return m.begin("abandoning", m.host.abandon)
	case "compact":
		return m.begin("summarizing", m.host.compact)
	}
	return nil
}

func (m *model) copyAnswer() tea.Cmd {
	if m.answer == "" {
		m.note(m.look.dim.Render("∙"), "there is no answer to copy yet")
		return nil
	}
	m.note(m.look.dim.Render("∙"), "the last answer is on the clipboard, if your terminal allows it")
	return tea.SetClipboard(m.answer)
}

// chooseSession lets the user choose another session.
func (m *model) chooseSession(search string) tea.Cmd {
	if m.controls.Sessions == nil || m.controls.Open == nil {
		m.elsewhere("/sessions")
		return nil
	}
	return m.offer("Sessions", search, m.host.preview, func() ([]Choice, error) { return m.controls.Sessions(context.Background()) },
		func(id string) tea.Cmd { return m.move("/resume", id, false) })
}

// chooseModel lets the user choose a model. The agent's own directive /model does the rest.
func (m *model) chooseModel() tea.Cmd {
	if m.controls.Models == nil {
		return m.pass("/model")
	}
	return m.offer("Models", "", nil, func() ([]Choice, error) { return m.controls.Models(context.Background()) },
		func(id string) tea.Cmd { return m.pass("/model " + id) })
}

// pass sends a text to the agent, after the running turn.
func (m *model) pass(text string) tea.Cmd {
	if m.working {
		m.queue = append(m.queue, text)
		return nil
	}
	return m.submit(text)
}

func (m *model) chooseMode() tea.Cmd {
	if m.controls.SetMode == nil {
		m.elsewhere("/mode")
		return nil
	}
	return m.offer("Modes, now "+m.mode(), "", nil, func() ([]Choice, error) { return m.controls.Modes, nil },
		func(id string) tea.Cmd { m.setMode(id); return nil })
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
	{"tab", "complete a command or a file"},
	{"@", "complete the path of a file"},
	{"!", "run a command yourself: !git status"},
	{"ctrl+v, alt+v", "paste an image"},
	{"shift+tab", "next mode"},
	{"ctrl+s", "steer the running turn, or queue messages"},
	{"ctrl+o", "show the whole last result"},
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
	if slices.ContainsFunc(rows, func(d Directive) bool { return d.About != "" }) {
		widest = min(widest, width/2)
	} else {
		widest = min(widest, width-3)
	}
	var lines []string
	for _, d := range rows {
		name := short(prefix+d.Name, widest)
		name += strings.Repeat(" ", max(widest-len([]rune(name)), 0))
		lines = append(lines, m.look.accent.Render(name)+"  "+short(visible.Clean(d.About), width-widest-4))
	}
	return lines
}
