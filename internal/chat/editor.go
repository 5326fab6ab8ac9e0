package chat

import (
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
)

// A longer paste is shown as one word, and sent in full.
const (
	pasteLines = 12
	pasteBytes = 4000
)

// editor is where the person types.
type editor struct {
	area   textarea.Model
	pastes map[string]string // placeholders of long pastes, and the pastes
}

func newEditor() editor {
	area := textarea.New()
	area.ShowLineNumbers = false
	area.DynamicHeight = true
	area.MaxHeight = 8
	area.MaxContentHeight = 1000
	area.MaxWidth = 0
	area.Placeholder = "type a message, or / for commands"
	area.SetPromptFunc(2, func(p textarea.PromptInfo) string {
		if p.LineNumber == 0 {
			return "› "
		}
		return "  "
	})
	area.SetVirtualCursor(false)
	plain := textarea.StyleState{Placeholder: lipgloss.NewStyle().Faint(true)}
	area.SetStyles(textarea.Styles{Focused: plain, Blurred: plain})
	area.KeyMap.InsertNewline = key.NewBinding(key.WithKeys("alt+enter", "ctrl+j", "shift+enter"))
	// The terminal handles pasting, which arrives as a message, and copying.
	area.KeyMap.Paste.SetEnabled(false)
	area.KeyMap.CopySelection.SetEnabled(false)
	_ = area.Focus() // the terminal draws a blinking cursor
	return editor{area: area, pastes: make(map[string]string)}
}

// text returns the typed text, with long pastes expanded.
func (e *editor) text() string {
	text := e.area.Value()
	for word, paste := range e.pastes {
		text = strings.ReplaceAll(text, word, paste)
	}
	return strings.TrimSpace(text)
}

// set replaces the text.
func (e *editor) set(text string) {
	e.area.Reset()
	clear(e.pastes)
	e.insert(text)
	e.area.MoveToEnd()
}

// insert inserts a text at the cursor.
func (e *editor) insert(text string) {
	text = strings.ToValidUTF8(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\uFFFD")
	lines := strings.Count(text, "\n") + 1
	if lines > pasteLines || len(text) > pasteBytes {
		word := fmt.Sprintf("[paste %d: %s, %s]", len(e.pastes)+1, many(lines, "line"), many(len(text), "byte"))
		e.pastes[word] = text
		text = word
	}
	e.area.InsertString(text)
}

// press passes a key to the editor.
func (e *editor) press(msg tea.KeyPressMsg) {
	e.area, _ = e.area.Update(msg)
}

// first and last report whether the cursor is in the first or last line.
func (e *editor) first() bool { return e.area.Line() == 0 && e.area.LineInfo().RowOffset == 0 }

func (e *editor) last() bool {
	info := e.area.LineInfo()
	return e.area.Line() == e.area.LineCount()-1 && info.RowOffset >= info.Height-1
}
