package chat

import (
	"fmt"

	tea "charm.land/bubbletea/v2"
	"github.com/sahilm/fuzzy"

	"github.com/belay-run/belay/internal/visible"
)

// pickerLines is how many entries a picker shows at a time, and previewLines how many lines of
// the chosen entry.
const (
	pickerLines  = 8
	previewLines = 5
)

// picker is a list from which the user chooses. The input is the search.
type picker struct {
	title   string
	all     []Choice
	found   []Choice
	search  string
	chosen  int
	saved   string // the input before the picker opened
	loading bool
	preview map[string][]string // by id; nil if the entries have no preview
	look    func(id string) []string
	pick    func(id string) tea.Cmd
}

// choicesMsg has the entries of a picker, and previewMsg the beginning of an entry.
type (
	choicesMsg struct {
		choices []Choice
		err     error
	}
	previewMsg struct {
		id    string
		lines []string
	}
)

// offer opens a picker. load returns its entries, and look the preview of one; nil: there is none.
func (m *model) offer(title, search string, look func(id string) []string, load func() ([]Choice, error), pick func(id string) tea.Cmd) tea.Cmd {
	m.picker = &picker{title: title, saved: m.editor.text(), loading: true, look: look, pick: pick}
	if look != nil {
		m.picker.preview = make(map[string][]string)
	}
	m.editor.set(search)
	return func() tea.Msg { all, err := load(); return choicesMsg{all, err} }
}

// offered fills the picker.
func (m *model) offered(msg choicesMsg) tea.Cmd {
	p := m.picker
	if p == nil {
		return nil
	}
	if msg.err != nil || len(msg.choices) == 0 {
		m.unpick()
		text := "there is nothing to choose from"
		if msg.err != nil {
			text = msg.err.Error()
		}
		m.note(m.look.warn.Render("∙"), text)
		return nil
	}
	p.loading, p.all = false, msg.choices
	p.found, p.search = p.all, ""
	return m.lookUp()
}

// unpick closes the picker and restores the input.
func (m *model) unpick() {
	m.editor.set(m.picker.saved)
	m.picker = nil
}

// lookUp searches the entries, and loads the preview of the chosen one.
func (m *model) lookUp() tea.Cmd {
	p := m.picker
	if search := m.editor.text(); search != p.search {
		p.search, p.chosen = search, 0
		p.found = searched(p.all, search)
	}
	if p.preview == nil || len(p.found) == 0 {
		return nil
	}
	id := p.found[p.chosen].ID
	if _, known := p.preview[id]; known {
		return nil
	}
	p.preview[id] = nil
	return func() tea.Msg { return previewMsg{id, p.look(id)} }
}

// searched returns the entries that match a search, the best first.
func searched(all []Choice, search string) []Choice {
	if search == "" {
		return all
	}
	texts := make([]string, len(all))
	for i, c := range all {
		texts[i] = c.Name + " " + c.ID + " " + c.About
	}
	var found []Choice
	for _, match := range fuzzy.Find(search, texts) {
		found = append(found, all[match.Index])
	}
	return found
}

// pickKey handles a key while a picker is open. It reports whether it used the key.
func (m *model) pickKey(msg tea.KeyPressMsg) (tea.Cmd, bool) {
	p := m.picker
	if p == nil {
		return nil, false
	}
	n := max(len(p.found), 1)
	switch msg.String() {
	case "up", "ctrl+p":
		p.chosen = (p.chosen + n - 1) % n
	case "down", "ctrl+n", "tab":
		p.chosen = (p.chosen + 1) % n
	case "pgdown":
		p.chosen = min(p.chosen+pickerLines, n-1)
	case "pgup":
		p.chosen = max(p.chosen-pickerLines, 0)
	case "esc":
		m.unpick()
		return nil, true
	case "enter":
		if p.chosen >= len(p.found) {
			return nil, true
		}
		id := p.found[p.chosen].ID
		m.unpick()
		return p.pick(id), true
	default:
		m.editor.press(msg)
	}
	return m.lookUp(), true
}

// pickerView shows the entries around the chosen one, and its preview.
func (m *model) pickerView() []string {
	p := m.picker
	if p == nil {
		return nil
	}
	title := fmt.Sprintf("%s · %d of %d", p.title, len(p.found), len(p.all))
	if p.loading {
		title = p.title + " · loading"
	}
	lines := []string{m.look.accent.Bold(true).Render(short(title, m.width-1))}
	shown := min(pickerLines, max(m.height/3, 2))
	first := min(max(p.chosen-shown/2, 0), max(len(p.found)-shown, 0))
	for i, c := range p.found[first:min(first+shown, len(p.found))] {
		name, about := visible.OneLine(c.Name), visible.OneLine(c.About)
		if name == "" {
			name = visible.OneLine(c.ID)
		}
		if about != "" {
			about = " · " + about
		}
		text := short(name, max(m.width-4, 1))
		if room := m.width - 4 - len([]rune(text)); room > 8 {
			about = cutTo(about, room)
		} else {
			about = ""
		}
		mark := "  "
		if first+i == p.chosen {
			mark, text = m.look.accent.Render("▸ "), m.look.user.Render(text)
		}
		lines = append(lines, mark+text+m.look.dim.Render(about))
	}
	if len(p.found) == 0 && !p.loading {
		lines = append(lines, m.look.dim.Render("  nothing matches"))
	}
	if len(p.found) > 0 && m.height >= 20 {
		for _, line := range p.preview[p.found[p.chosen].ID] {
			lines = append(lines, m.look.dim.Render("  │ "+cutTo(line, m.width-6)))
		}
	}
	return append(lines, each(m.look.dim, m.packed("type to search", "enter choose", "esc back"))...)
}
