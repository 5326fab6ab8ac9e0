package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/belay-run/belay"
)

// bench holds a model without a terminal. It is also the host, and records what the model
// requests.
type bench struct {
	t       *testing.T
	m       *model
	at      time.Time
	printed []string // without styles
	raw     []string
	did     []string // calls of the host's methods
	fail    error    // the error of remember
	left    bool
	parts   []belay.Part // of the last message
}

// newBench makes a model on a screen of 60 columns and 24 lines.
func newBench(t *testing.T, opts *Options) *bench {
	t.Helper()
	return openBench(t, opts, &opening{session: "main"})
}

func openBench(t *testing.T, opts *Options, o *opening) *bench {
	t.Helper()
	if opts == nil {
		opts = new(Options)
	}
	b := &bench{t: t, at: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	b.m = newModel(b, o, opts)
	b.m.clock = func() time.Time { return b.at }
	b.m.later = func() tea.Cmd { return nil }
	b.m.printer = func(pages []string) tea.Cmd {
		for _, page := range pages {
			b.raw = append(b.raw, strings.Split(page, "\n")...)
			b.printed = append(b.printed, strings.Split(ansi.Strip(page), "\n")...)
		}
		return func() tea.Msg { return printedMsg{} }
	}
	b.send(tea.WindowSizeMsg{Width: 60, Height: 24})
	if len(b.raw) > 0 {
		t.Errorf("it prints %q before there is a view", b.raw)
	}
	b.send(drawnMsg{})
	return b
}

func (b *bench) run(_ int, text string, parts ...belay.Part) {
	b.did = append(b.did, "run "+text)
	b.parts = parts
}

func (b *bench) steer(id int, text string, parts ...belay.Part) {
	b.parts = parts
	b.did = append(b.did, fmt.Sprint("steer ", id, " ", text))
}

func (b *bench) rewind(_ int, at string, keepFiles bool) {
	b.did = append(b.did, fmt.Sprint("rewind ", at, " ", keepFiles))
}
func (b *bench) open(_ int, id string)      { b.did = append(b.did, "open "+id) }
func (b *bench) preview(id string) []string { return []string{"› about " + id} }
func (b *bench) resume(int)                 { b.did = append(b.did, "resume") }
func (b *bench) abandon(int)                { b.did = append(b.did, "abandon") }
func (b *bench) compact(int)                { b.did = append(b.did, "compact") }
func (b *bench) abort(int)                  { b.did = append(b.did, "abort") }
func (b *bench) force()                     { b.did = append(b.did, "force") }
func (b *bench) remember(text string) error { b.did = append(b.did, "remember "+text); return b.fail }

// send passes messages to the model and runs its commands, until no command is left.
func (b *bench) send(msgs ...tea.Msg) {
	b.t.Helper()
	for _, msg := range msgs {
		_, cmd := b.m.Update(msg)
		b.do(cmd)
		if view := b.m.View(); view.Content != "" {
			b.fits(view.Content)
		}
	}
}

func (b *bench) do(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			b.do(c)
		}
	case tea.QuitMsg:
		b.left = true
	default:
		b.send(msg)
	}
}

// fits checks two rules for every view: the view leaves space on the screen, and no line is
// too wide.
func (b *bench) fits(content string) {
	b.t.Helper()
	lines := strings.Split(content, "\n")
	if most := b.m.height - b.m.page(); len(lines) > max(most, 1) {
		b.t.Fatalf("the view has %d lines, want at most %d:\n%s", len(lines), most, ansi.Strip(content))
	}
	for _, line := range lines {
		if w := ansi.StringWidth(line); w >= max(b.m.width, 20) {
			b.t.Fatalf("a line of the view takes %d of %d columns: %q", w, b.m.width, line)
		}
	}
}

// wait advances the clock.
func (b *bench) wait(d time.Duration) {
	b.at = b.at.Add(d)
	b.send(tickMsg{})
}

// keys presses keys by their names, and types all other words.
func (b *bench) keys(names ...string) {
	b.t.Helper()
	for _, name := range names {
		if k, ok := keyNames[name]; ok {
			b.send(tea.KeyPressMsg(k))
			continue
		}
		for _, r := range name {
			b.send(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
}

var keyNames = map[string]tea.Key{
	"enter": {Code: tea.KeyEnter}, "alt+enter": {Code: tea.KeyEnter, Mod: tea.ModAlt}, "ctrl+j": {Code: 'j', Mod: tea.ModCtrl},
	"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "tab": {Code: tea.KeyTab}, "shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift}, "esc": {Code: tea.KeyEscape},
	"ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+d": {Code: 'd', Mod: tea.ModCtrl}, "ctrl+t": {Code: 't', Mod: tea.ModCtrl},
	"backspace": {Code: tea.KeyBackspace}, "ctrl+s": {Code: 's', Mod: tea.ModCtrl}, "ctrl+v": {Code: 'v', Mod: tea.ModCtrl}, "ctrl+o": {Code: 'o', Mod: tea.ModCtrl}, "alt+v": {Code: 'v', Mod: tea.ModAlt}, "ctrl+u": {Code: 'u', Mod: tea.ModCtrl},
}

// event sends an event with the current time.
func (b *bench) event(e belay.Event) {
	b.t.Helper()
	e.Time = b.at
	b.send(eventsMsg{e})
}

// says streams a text of the model, in deltas.
func (b *bench) says(deltas ...string) {
	b.t.Helper()
	for _, d := range deltas {
		b.event(belay.Event{Kind: belay.EventTextDelta, Text: d})
	}
}

// calls sends the event of a new call.
func (b *bench) calls(id, tool, input string) *belay.CallPart {
	b.t.Helper()
	part := &belay.CallPart{ID: id, Tool: tool, Input: json.RawMessage(input)}
	b.event(belay.Event{Kind: belay.EventToolUse, Call: part})
	return part
}

// answers sends the result of a call.
func (b *bench) answers(part *belay.CallPart, r belay.Result) {
	b.t.Helper()
	b.event(belay.Event{Kind: belay.EventToolUseResult, Call: part, Result: &r})
}

// view returns the view, without styles and trailing spaces.
func (b *bench) view() string { return bare(b.m.View().Content) }

// screen returns the printed lines and the view.
func (b *bench) screen() string { return bare(strings.Join(b.printed, "\n")) + "\n" + b.view() }

func bare(text string) string {
	lines := strings.Split(ansi.Strip(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// shows checks that a text contains these texts, in this order.
func shows(t *testing.T, where, text string, wants ...string) {
	t.Helper()
	rest := text
	for _, want := range wants {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Errorf("%s does not show %q, or not in its place:\n%s", where, want, text)
			return
		}
		rest = after
	}
}

// hides checks that a text contains none of these texts.
func hides(t *testing.T, where, text string, refused ...string) {
	t.Helper()
	for _, r := range refused {
		if strings.Contains(text, r) {
			t.Errorf("%s shows %q:\n%s", where, r, text)
		}
	}
}
