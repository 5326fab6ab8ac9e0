package chat

import (
	"strings"

	tea "charm.land/bubbletea/v2"
)

// popupLines is how many completions are shown at the same time.
const popupLines = 6

// popup holds the completions of the typed text.
type popup struct {
	matches []Directive
	chosen  int
	closed  string // the text for which the user closed the popup
}

// suggest updates the completions of the typed text.
func (m *model) suggest() {
	typed := m.editor.area.Value()
	p := &m.popup
	name, ok := strings.CutPrefix(typed, "/")
	if !ok || strings.ContainsAny(name, " \n") || typed == p.closed {
		p.matches, p.chosen = nil, 0
		if typed != p.closed {
			p.closed = ""
		}
		return
	}
	p.closed = ""
	before := ""
	if p.chosen < len(p.matches) {
		before = p.matches[p.chosen].Name
	}
	p.matches, p.chosen = nil, 0
	for _, d := range m.known {
		if strings.HasPrefix(strings.ToLower(d.Name), strings.ToLower(name)) {
			if d.Name == before {
				p.chosen = len(p.matches)
			}
			p.matches = append(p.matches, d)
		}
	}
}

// choose handles a key while completions are shown. It reports whether it used the key.
func (m *model) choose(key string) (tea.Cmd, bool) {
	p := &m.popup
	if len(p.matches) == 0 {
		return nil, false
	}
	word := "/" + p.matches[p.chosen].Name
	switch key {
	case "up", "shift+tab":
		p.chosen = (p.chosen + len(p.matches) - 1) % len(p.matches)
	case "down":
		p.chosen = (p.chosen + 1) % len(p.matches)
	case "esc":
		p.closed = m.editor.area.Value()
		p.matches = nil
	case "tab", "enter":
		if key == "enter" && (isOwn(word) || m.editor.area.Value() == word) {
			m.editor.set(word)
			return m.send(), true
		}
		m.editor.set(word + " ")
		p.matches = nil
	default:
		return nil, false
	}
	return nil, true
}

// popupView shows the chosen completion and those around it.
func (m *model) popupView() []string {
	p := &m.popup
	if len(p.matches) == 0 {
		return nil
	}
	first := min(max(p.chosen-popupLines/2, 0), max(len(p.matches)-popupLines, 0))
	shown := p.matches[first:min(first+popupLines, len(p.matches))]
	lines := m.table(shown, "/", m.width-2)
	for i := range lines {
		if first+i == p.chosen {
			lines[i] = m.look.accent.Render("▸ ") + lines[i]
		} else {
			lines[i] = "  " + lines[i]
		}
	}
	return lines
}
