package chat

import (
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
)

// A paste with more lines or bytes than this is shown as one word, but sent in full.
const (
	pasteLines = 12
	pasteBytes = 4000
)

// invitation is shown in an empty input field.
const invitation = "type a message, or / for commands"

// editor is the input field.
type editor struct {
	area   textarea.Model
	pastes map[string]string // the full text of each long paste, by the word that is shown instead
}

func newEditor() editor {
	area := textarea.New()
	area.ShowLineNumbers = false
	area.DynamicHeight = true
	area.MaxHeight = 8
	area.MaxContentHeight = 1000
	area.MaxWidth = 0
	area.Placeholder = invitation
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
	// Disable paste and copy: the terminal does both, and a paste arrives as a message.
	area.KeyMap.Paste.SetEnabled(false)
	area.KeyMap.CopySelection.SetEnabled(false)
	_ = area.Focus() // the command for blinking is not needed: the terminal draws the cursor
	return editor{area: area, pastes: make(map[string]string)}
}

// text returns the typed text, with the full text of long pastes.
func (e *editor) text() string { return strings.TrimSpace(e.whole()) }

// whole returns the text with the space around it.
func (e *editor) whole() string {
	text := e.area.Value()
	for word, paste := range e.pastes {
		text = strings.ReplaceAll(text, word, paste)
	}
	return text
}

func (e *editor) set(text string) {
	e.area.Reset()
	clear(e.pastes)
	e.insert(text)
	e.area.MoveToEnd()
}

// insert inserts a text at the cursor. It shows a long text as one word, see pasteLines.
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

// press passes a key to the text area.
func (e *editor) press(msg tea.KeyPressMsg) {
	e.area, _ = e.area.Update(msg)
}

// first reports whether the cursor is in the first line, and last whether it is in the
// last.
func (e *editor) first() bool { return e.area.Line() == 0 && e.area.LineInfo().RowOffset == 0 }

func (e *editor) last() bool {
	info := e.area.LineInfo()
	return e.area.Line() == e.area.LineCount()-1 && info.RowOffset >= info.Height-1
}
