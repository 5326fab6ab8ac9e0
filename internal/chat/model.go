package chat

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/near"
	typed "github.com/belay-run/belay/internal/scan"
	"github.com/belay-run/belay/internal/visible"
)

// The runner sends these messages.
type (
	// eventsMsg has events of the running turn, in order.
	eventsMsg []belay.Event
	// overMsg means that the running activity has ended. usage is the usage of the session.
	overMsg struct {
		err   error
		usage belay.Usage
		// said is the message to show, if the activity was not a turn.
		said string
		// open means that the turn is still open in the store, because its end could not be
		// stored.
		open bool
	}
	// keptMsg says that an entry was written to the history file, or why it was not.
	keptMsg struct{ err error }
	// noteMsg is a warning that belongs to no turn.
	noteMsg string
	// leaveMsg asks the chat to end.
	leaveMsg struct{}
	tickMsg  struct{}
)

// host runs activities for the model. Its methods return at once, and results arrive as
// messages. Each activity has a number: an abort can arrive before the activity starts, and
// must not affect another activity.
type host interface { //nolint:interfacebloat // it is the loop's whole view of the session
	run(n int, text string, parts ...belay.Part)
	resume(n int)
	abandon(n int)
	compact(n int)
	abort(n int)
	force()
	// steer passes a message to the running turn. A steeredMsg follows.
	steer(id int, text string, parts ...belay.Part)
	// rewind goes back to an earlier message. An openedMsg follows.
	rewind(n int, at string, keepFiles bool)
	// open opens another session, or a new one if id is empty. An openedMsg follows.
	open(n int, id string)
	// preview returns the beginning of a session.
	preview(id string) []string
	remember(text string) error
}

// look holds the styles and the properties of the terminal.
type look struct {
	theme

	profile colorprofile.Profile
	light   bool
}

// model is the state of the chat. Only the loop uses it.
type model struct {
	host    host
	printer printer
	clock   func() time.Time
	later   func() tea.Cmd // returns a command that sends a tickMsg after a short time
	person  string
	opening opening
	known   []Directive
	serial  map[string]bool // names of the tools that run alone

	controls Controls
	knows    bool // known has all commands of the agent

	look          look
	md            markdown
	width, height int
	now           time.Time
	pressed       time.Time // when the user last pressed a key
	ticking       bool
	frame         tea.View
	tall          height
	frames        func() int64 // returns how many frames have been drawn
	draws         int64

	// These fields are about printed output, see print.go.
	out      []string
	said     kind
	printing bool
	drawn    bool // the view is on the screen, so lines can be printed above the view

	// These fields are about the running activity, see turn.go.
	working  bool
	number   int // number of the running activity
	doing    string
	since    time.Time
	aborting bool
	step     stepView
	calls    []*call
	cut      *call // the last finished call whose result was shown in part: see wholeResult
	floor    int   // the least height of the view in this turn
	thinking bool
	thought  string          // the last thinking of the model, in full
	warned   map[string]bool // messages about failed hooks that were already shown
	failures map[string]bool // diagnostics of this turn that were already shown, see diagnosed
	// commanded means that the turn runs a command of the user, and ran that its output was shown.
	commanded, ran bool
	answer         string // the last answer, as markdown

	usage   belay.Usage // usage of the session, as stored
	spent   belay.Usage // usage of the running turn
	answers string      // name of the model that answered last
	full    int         // how many tokens the last request and its response had

	editor   editor
	history  history
	popup    popup
	picker   *picker // nil: no list is open
	files    fileList
	images   []pastedImage
	pastes   int    // how many images were pasted
	pasting  bool   // the clipboard is being read
	doubted  string // the message with an unknown /word that waits for a second enter
	queue    []string
	steers   bool      // a message that is sent while a turn runs steers it, instead of waiting
	messages int       // how many messages were sent to running turns
	steered  []steered // messages that the running turn has not taken yet
	passed   string    // the mode at which the last shift+tab stopped: see stay
	stopped  bool      // the last turn was aborted
	away     bool      // the terminal has no focus
	waited   bool      // the chat waited for the user before this message, see notify
	desk     desk

	keeping []string // entries that are not in the history file yet; the first is being written
	leaving bool     // quit when nothing runs and everything is printed
	asking  bool     // the user pressed ctrl+c once; the next ctrl+c quits
	gone    bool
}

func newModel(h host, o *opening, opts *Options) *model {
	m := &model{
		warned: make(map[string]bool), host: h, printer: printAbove, clock: time.Now, later: tickLater, person: opts.person(), opening: *o,
		controls: opts.Controls, knows: len(opts.Directives) > 0,
		known: known(opts.Directives), serial: opts.serial(), look: look{theme: newTheme(), profile: colorprofile.TrueColor},
		editor: newEditor(), history: newHistory(o.history), usage: o.usage, answers: opts.Model, steers: true,
	}
	m.frames = func() int64 { m.draws++; return m.draws } // without a canvas, every call counts as a new frame
	m.md.profile = m.look.profile
	m.now = m.clock()
	return m
}

// Init asks the terminal for its background color.
func (m *model) Init() tea.Cmd {
	if m.look.profile <= colorprofile.ASCII {
		return nil
	}
	return tea.RequestBackgroundColor
}

// Update changes the state by a message. It returns the commands that follow, including
// those that print or quit.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) { //nolint:ireturn // the loop defines it
	m.now = m.clock()
	cmd := m.heed(msg)
	if m.width > 0 {
		cmd = tea.Batch(cmd, m.suggest())
	}
	cmd = tea.Batch(cmd, m.notify())
	printed := m.print()
	m.frame = m.draw()
	if m.leaving && m.done() {
		m.gone = true
		m.frame = m.farewell()
		printed = tea.Quit
	}
	var again tea.Cmd
	if m.working || m.tall.waits() || len(m.desk.waiting) > 0 && !m.desk.armed {
		again = m.tick()
	}
	return m, tea.Batch(cmd, printed, again)
}

// done reports whether nothing is running and everything is printed and stored.
func (m *model) done() bool {
	return !m.working && !m.printing && len(m.out) == 0 && len(m.keeping) == 0 && !m.tall.waits() && !m.gone
}

func (m *model) heed(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.resize(msg.Width, msg.Height)
	case tea.BackgroundColorMsg:
		m.look.light = !msg.IsDark()
		m.md.fit(m.md.width, m.look.light)
	case tea.PasteMsg:
		m.stay()
		m.pressed, m.asking = m.now, false
		m.editor.insert(msg.Content)
	case tea.KeyPressMsg:
		return m.press(msg)
	case eventsMsg:
		for i := range msg {
			m.happened(&msg[i])
		}
	case overMsg:
		return m.over(&msg)
	case askMsg:
		m.asked(msg)
	case withdrawMsg:
		m.withdrawn(msg.id)
	case keptMsg:
		if msg.err != nil {
			m.note(m.look.warn.Render("∙"), "the input history is not saved: "+msg.err.Error())
		}
		m.keeping = m.keeping[1:]
		return m.keep()
	case noteMsg:
		m.note(m.look.warn.Render("⚑"), string(msg))
	case drawnMsg:
		m.drawn = true
	case printedMsg:
		m.printing = false
	case leaveMsg:
		return m.leave()
	case openedMsg:
		m.moved(msg)
	case steeredMsg:
		return m.steeredOr(msg)
	case tea.FocusMsg:
		m.away = false
	case tea.BlurMsg:
		m.away = true
	case choicesMsg:
		return m.offered(msg)
	case previewMsg:
		if m.picker != nil && m.picker.preview != nil {
			m.picker.preview[msg.id] = msg.lines
		}
	case pastedMsg:
		m.pasted(msg)
	case filesMsg:
		m.files.listed(msg, m.now)
	case tickMsg:
		m.ticking = false
		m.arm()
	}
	return nil
}

// resize adapts the chat to a new size. The first call shows the greeting.
func (m *model) resize(width, height int) {
	first := m.height == 0
	m.width, m.height = max(width, 20), max(height, 3)
	m.floor = 0
	m.md.fit(m.width-1, m.look.light)
	m.editor.area.SetWidth(m.width - 1)
	m.editor.area.MaxHeight = max(min(8, m.height/3), 1)
	if first {
		m.greet()
	}
}

// tick schedules a tickMsg, unless one is already scheduled.
func (m *model) tick() tea.Cmd {
	if m.ticking {
		return nil
	}
	m.ticking = true
	return m.later()
}

func tickLater() tea.Cmd {
	return tea.Tick(100*time.Millisecond, func(time.Time) tea.Msg { return tickMsg{} })
}

func (m *model) press(msg tea.KeyPressMsg) tea.Cmd {
	key := msg.String()
	if key == "alt+esc" { // two quick escapes arrive as one key
		key, msg = "esc", tea.KeyPressMsg{Code: tea.KeyEscape}
	}
	if key != "shift+tab" {
		m.stay()
	}
	if key == "ctrl+c" {
		return m.interrupt()
	}
	m.asking = false
	if cmd, ok := m.answerKey(key, msg.Text); ok {
		m.pressed = m.now
		return cmd
	}
	m.pressed = m.now
	if cmd, ok := m.pickKey(msg); ok {
		return cmd
	}
	if cmd, ok := m.choose(key); ok {
		return cmd
	}
	switch {
	case key == "shift+tab":
		m.nextMode()
	case key == "enter":
		return m.send()
	case key == "ctrl+d" && m.editor.area.Value() == "":
		return m.leave()
	case key == "ctrl+s" && m.opening.steers:
		m.steers = !m.steers
	case key == "ctrl+o":
		m.wholeResult()
	case key == "ctrl+v" || key == "alt+v":
		return m.pasteImage(key)
	case key == "ctrl+t":
		m.toggleThinking()
	case key == "up" && m.editor.first():
		m.back()
	case key == "down" && m.editor.last():
		if text, ok := m.history.newer(); ok {
			m.editor.set(text)
		}
	default:
		m.editor.press(msg)
	}
	return nil
}

// back puts the last queued message back into an empty input. If the input is not empty, or
// no message is queued, it shows the previous entry of the history.
func (m *model) back() {
	typed := m.editor.text()
	if n := len(m.queue); n > 0 && typed == "" {
		m.editor.set(m.queue[n-1])
		m.queue = m.queue[:n-1]
		return
	}
	if text, ok := m.history.older(typed); ok {
		m.editor.set(text)
		m.popup.closed = text // keep the popup closed, so that the arrow keys stay in the history
	}
}

// interrupt handles ctrl+c. It aborts the running activity, clears the input, or asks
// whether to quit. It quits if it has just asked. If an abort is already running, it quits
// at once.
func (m *model) interrupt() tea.Cmd {
	m.pressed = m.now
	switch {
	case m.working && m.aborting:
		m.gone = true
		return tea.Sequence(func() tea.Msg { m.host.force(); return nil }, tea.Quit)
	case m.picker != nil:
		m.unpick()
	case m.working:
		m.restore()
		return m.abort()
	case m.editor.area.Value() != "":
		m.editor.set("")
		m.asking = false
	case m.asking:
		return m.leave()
	default:
		m.asking = true
	}
	return nil
}

// leave ends the chat. It first aborts the running activity.
func (m *model) leave() tea.Cmd {
	m.leaving = true
	m.queue = nil
	m.restore()
	m.editor.set("")
	if !m.working || m.aborting {
		return nil
	}
	return m.abort()
}

func (m *model) abort() tea.Cmd {
	m.aborting = true
	n := m.number
	return func() tea.Msg { m.host.abort(n); return nil }
}

// send handles the input. The input is a command of the chat, or a message for the agent. A
// message is queued while a turn runs.
func (m *model) send() tea.Cmd {
	text := m.editor.text()
	if text == "" || m.leaving {
		return nil
	}
	if m.doubt(text) {
		return nil
	}
	m.editor.set("")
	m.popup = popup{}
	var kept tea.Cmd
	if m.history.add(text) {
		m.keeping = append(m.keeping, text)
		if len(m.keeping) == 1 {
			kept = m.keep()
		}
	}
	switch {
	case isOwn(text):
		return tea.Batch(kept, m.command(text))
	case m.working:
		return tea.Batch(kept, m.whileWorking(text))
	default:
		return tea.Batch(kept, m.submit(text))
	}
}

// keep writes the next entry to the history file. Entries are written one after the other, in
// their order.
func (m *model) keep() tea.Cmd {
	if len(m.keeping) == 0 {
		return nil
	}
	text := m.keeping[0]
	return func() tea.Msg { return keptMsg{m.host.remember(text)} }
}

// submit starts a turn with a message.
func (m *model) submit(text string) tea.Cmd {
	m.say(kindUser, m.userLines(text)...)
	if hint := near.Slash(typed.Leading(text), namesOf(m.known)); hint != "" && !m.knows {
		m.note(m.look.warn.Render("∙"), hint)
	}
	m.work("working")
	n := m.number
	if command, ok := strings.CutPrefix(text, "!"); ok && strings.TrimSpace(command) != "" {
		text = "/" + shellDirective + " " + strings.TrimSpace(command)
		m.commanded = true
	}
	parts := m.attached(text)
	return func() tea.Msg { m.host.run(n, text, parts...); return nil }
}

// shellDirective is the directive of the agent that runs a command of the user.
const shellDirective = "sh"

func (m *model) userLines(text string) []string {
	const most = 20
	lines := indented(visible.Clean(asTyped(text)), "› ", m.width-1)
	if len(lines) > most+1 {
		rest := many(len(lines)-most, "line")
		lines = append(lines[:most:most], "  … "+rest+" more")
	}
	return each(m.look.user, lines)
}

// toggleThinking switches between showing all thinking and showing one line. It applies
// to the last thinking and to all later thinking.
func (m *model) toggleThinking() {
	m.thinking = !m.thinking
	if m.thinking && strings.TrimSpace(m.thought) != "" {
		m.say(kindText, m.thoughtLines(m.thought)...)
	}
}
