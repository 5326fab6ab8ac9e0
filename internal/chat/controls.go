package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/near"
	typed "github.com/belay-run/belay/internal/scan"
	"github.com/belay-run/belay/internal/visible"
)

// Controls are what the commands of the chat need beside a session. A command whose function is
// nil says that it does not work here.
type Controls struct {
	// Where is where such a command does not work, such as "at a server".
	Where string
	// Open opens a session of the agent. An empty id makes a new session. Open closes the
	// session that was open before.
	Open func(ctx context.Context, id string) (Session, error)
	// Sessions lists sessions, the last changed first.
	Sessions func(ctx context.Context) ([]Choice, error)
	// Models lists models.
	Models func(ctx context.Context) ([]Choice, error)
	// Modes are the modes, in the order in which shift+tab goes through them.
	Modes []Choice
	// Mode returns the mode of a session. SetMode changes it at once, also for a running turn.
	// PassMode does the same with a mode that the user may only pass on the way to another one:
	// if the user stays in it, SetMode follows. An approved plan does not return to a mode that
	// was only passed.
	Mode              func(session string) string
	SetMode, PassMode func(session, mode string) error
	// Recall looks in the store for a turn that is still open, so that Mode returns the mode with
	// which the turn would continue.
	Recall func(ctx context.Context, session string) error
	// Window returns how many tokens a request to a model may have; 0 if unknown.
	Window func(model string) int
	// Messages lists the messages of the user to which a session can go back, the last first.
	// RewindPlan says what happens to the files, and Rewind goes back. It returns a new session,
	// and the text of the message.
	Messages   func(ctx context.Context, session string) ([]Choice, error)
	RewindPlan func(ctx context.Context, session, at string) (string, error)
	Rewind     func(ctx context.Context, session, at string, keepFiles bool) (Session, string, error)
	// Attach returns the images that a message names, and what to say about them.
	Attach func(text string) (parts []belay.Part, said []string)
	// TooLarge says why a model does not get an image, or returns "".
	TooLarge func(model string, image *belay.Media) string
	// Clipboard returns the image in the clipboard.
	Clipboard func(ctx context.Context) (belay.Part, error)
	// Files lists the files of the project, for completion.
	Files func(ctx context.Context) ([]string, error)
	// AddDir lets the agent use one more directory. It returns what that means.
	AddDir func(dir string) (said string, err error)
	// Jobs lists the commands that a session runs, or has run, in the background. JobOutput
	// returns the kept output of one. StopJob stops one and waits for its end.
	Jobs      func(session string) []Job
	JobOutput func(session, id string) (string, error)
	StopJob   func(ctx context.Context, session, id string) error
}

// Choice is an entry of a list to choose from.
type Choice struct {
	ID    string // what is chosen
	Name  string // what is shown; defaults to the id
	About string // one line
}

// elsewhere says that a command does not work here.
func (m *model) elsewhere(command string) {
	where := m.controls.Where
	if where == "" {
		where = "here"
	}
	m.note(m.look.warn.Render("∙"), command+" does not work "+where)
}

// modal shows the mode of the session in the footer.
func (m *model) mode() string {
	if m.controls.Mode == nil {
		return ""
	}
	return m.controls.Mode(m.opening.session)
}

// setMode changes the mode of the session.
func (m *model) setMode(name string) {
	if m.controls.SetMode == nil {
		m.elsewhere("/mode")
		return
	}
	names := choiceIDs(m.controls.Modes)
	if err := m.controls.SetMode(m.opening.session, name); err != nil {
		m.note(m.look.bad.Render("✗"), fmt.Sprintf("there is no mode %q%s: use %s", visible.All(name), near.Hint(name, names), strings.Join(names, ", ")))
		return
	}
	about := ""
	if at := slices.IndexFunc(m.controls.Modes, func(c Choice) bool { return c.ID == name }); at >= 0 {
		about = ": " + m.controls.Modes[at].About
	}
	m.note(m.look.accent.Render("∙"), "mode "+name+about)
}

// nextMode goes to the next mode of the list. From a mode that is not in the list it goes to
// the first. The user stays in the mode with the next key that is not shift+tab: see stay.
func (m *model) nextMode() {
	modes := m.controls.Modes
	if m.controls.PassMode == nil || len(modes) == 0 {
		m.elsewhere("shift+tab")
		return
	}
	at := slices.IndexFunc(modes, func(c Choice) bool { return c.ID == m.mode() })
	next := modes[(at+1)%len(modes)].ID
	if err := m.controls.PassMode(m.opening.session, next); err != nil {
		m.note(m.look.bad.Render("✗"), err.Error())
		return
	}
	m.passed = next
}

// stay chooses the mode at which shift+tab stopped, unless the mode has changed since then.
func (m *model) stay() {
	passed := m.passed
	m.passed = ""
	if passed == "" || passed != m.mode() {
		return
	}
	if err := m.controls.SetMode(m.opening.session, passed); err != nil {
		m.note(m.look.bad.Render("✗"), err.Error())
	}
}

func choiceIDs(all []Choice) []string {
	ids := make([]string, len(all))
	for i, c := range all {
		ids[i] = c.ID
	}
	return ids
}

// openedMsg means that another session is open.
type openedMsg struct {
	opening *opening
	typed   string // the message to put into the input
	err     error
}

// move opens another session, or a new one if id is empty. clears also clears the screen.
func (m *model) move(command, id string, clears bool) tea.Cmd {
	switch {
	case m.controls.Open == nil:
		m.elsewhere(command)
		return nil
	case m.working:
		m.note(m.look.warn.Render("∙"), "wait for the end of the turn, or abort it with ctrl+c")
		return nil
	case id == m.opening.session:
		m.note(m.look.dim.Render("∙"), "this session is open already")
		return nil
	}
	m.work("opening")
	n := m.number
	load := func() tea.Msg { m.host.open(n, id); return nil }
	if !clears {
		return load
	}
	m.said = kindNothing
	return tea.Sequence(tea.ClearScreen, load)
}

// moved shows another session.
func (m *model) moved(msg openedMsg) {
	m.working, m.floor = false, 0
	if msg.err != nil {
		m.note(m.look.bad.Render("✗"), msg.err.Error())
		return
	}
	before := m.opening.session
	msg.opening.history = nil
	m.opening = *msg.opening
	m.usage, m.spent, m.full = m.opening.usage, belay.Usage{}, 0
	m.answer, m.thought, m.queue = "", "", nil
	if m.said != kindNothing {
		m.note(m.look.dim.Render("∙"), "session "+before+" is closed; /resume opens it again")
	}
	m.greet()
	if msg.typed != "" {
		m.editor.set(asTyped(msg.typed))
	}
}

// bill shows what the session has used.
func (m *model) cost() {
	u := m.total()
	rows := []Directive{
		{"input", count(u.In) + " tokens"},
		{"from the cache", count(u.CacheRead) + " tokens, " + count(u.CacheWrite) + " written"},
		{"output", count(u.Out) + " tokens"},
		{"cost", fmt.Sprintf("$%.4f", u.Cost)},
	}
	if u.Cost == 0 {
		rows[3].About = "unknown, or nothing: the model has no price"
	}
	if meter := m.meter(); meter != "" {
		rows = append(rows, Directive{"context", meter})
	}
	m.say(kindText, m.table(rows, "", m.width)...)
}

// total returns the usage of the session with that of the running turn.
func (m *model) total() belay.Usage {
	u := m.usage
	u.In += m.spent.In
	u.Out += m.spent.Out
	u.CacheRead += m.spent.CacheRead
	u.CacheWrite += m.spent.CacheWrite
	u.Cost += m.spent.Cost
	return u
}

// meter returns how full the context of the model is, or "" if that is unknown.
func (m *model) meter() string {
	if m.controls.Window == nil || m.full == 0 {
		return ""
	}
	window := m.controls.Window(m.answers)
	if window <= 0 {
		return ""
	}
	return fmt.Sprintf("%d%% of %s", (100*m.full+window-1)/window, count(window))
}

// unknownWord returns the /word at the beginning of a message if neither the chat nor the agent
// knows it, and otherwise "". A path such as /etc/hosts is no such word.
func (m *model) unknownWord(text string) string {
	if !m.knows { // at a server, the agent's words are not known
		return ""
	}
	name := typed.Leading(text)
	if name == "" || slices.Contains(namesOf(m.known), name) {
		return ""
	}
	return name
}

// doubt asks about a message that begins with an unknown /word, once. It reports whether the
// message waits for a second enter.
func (m *model) doubt(text string) bool {
	word := m.unknownWord(text)
	if word == "" || m.doubted == text {
		m.doubted = ""
		return false
	}
	m.doubted = text
	m.note(m.look.warn.Render("?"), fmt.Sprintf("there is no command /%s%s: press enter again to send it to the model, or change it", visible.All(word), near.Hint(word, namesOf(m.known))))
	return true
}
