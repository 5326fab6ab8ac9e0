package chat

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// popupLines is how many completions are shown at the same time.
const popupLines = 6

// popup holds the completions of the typed text.
type popup struct {
	prefix  string // what the names begin with: / or @
	matches []Directive
	chosen  int
	closed  string // the text for which the user closed the popup
	typed   string // the text for which the matches were found
}

// suggest updates the completions of the typed text. It returns a command that lists the files
// of the project, if it needs them.
func (m *model) suggest() tea.Cmd {
	typed := m.editor.area.Value()
	p := &m.popup
	before := ""
	if p.chosen < len(p.matches) && typed == p.typed { // other text has other best matches
		before = p.matches[p.chosen].Name
	}
	p.matches, p.chosen, p.typed = nil, 0, typed
	if typed == p.closed || m.picker != nil || m.desk.typing != draftNone {
		return nil
	}
	p.closed = ""
	var list tea.Cmd
	if name, ok := strings.CutPrefix(typed, "/"); ok && !strings.ContainsAny(name, " \n") {
		p.prefix = "/"
		for _, d := range m.known {
			if strings.HasPrefix(strings.ToLower(d.Name), strings.ToLower(name)) {
				p.matches = append(p.matches, d)
			}
		}
	} else if search, ok := m.editor.at(); ok && m.controls.Files != nil {
		p.prefix = "@"
		list = m.files.want(m)
		p.matches = m.files.find(search)
	}
	for i, d := range p.matches {
		if d.Name == before && before != "" {
			p.chosen = i
		}
	}
	for i, d := range p.matches {
		if p.prefix+d.Name == typed { // the whole name is typed, so enter must not choose a longer one
			p.chosen = i
		}
	}
	return list
}

// choose handles a key while completions are shown. It reports whether it used the key.
func (m *model) choose(key string) (tea.Cmd, bool) {
	p := &m.popup
	if len(p.matches) == 0 {
		return nil, false
	}
	if p.prefix == "@" && (key == "tab" || key == "enter") {
		m.editor.complete(p.matches[p.chosen].Name)
		p.matches, p.closed = nil, m.editor.area.Value()
		return nil, true
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

// popupView shows the chosen completion and those around it, and how many there are.
func (m *model) popupView() []string {
	p := &m.popup
	if len(p.matches) == 0 {
		return nil
	}
	first := min(max(p.chosen-popupLines/2, 0), max(len(p.matches)-popupLines, 0))
	shown := p.matches[first:min(first+popupLines, len(p.matches))]
	lines := m.table(shown, p.prefix, m.width-2)
	for i := range lines {
		if first+i == p.chosen {
			lines[i] = m.look.accent.Render("▸ ") + lines[i]
		} else {
			lines[i] = "  " + lines[i]
		}
	}
	if len(p.matches) > popupLines {
		lines = append(lines, m.look.dim.Render("  "+short(fmt.Sprintf("%d of %d · up and down show more", p.chosen+1, len(p.matches)), m.width-3)))
	}
	return lines
}
