package chat

import (
	"charm.land/lipgloss/v2"
)

// theme holds the styles. It uses the sixteen colours of the terminal. Colour is never the
// only sign of a meaning.
type theme struct {
	user, accent, dim, good, bad, warn, added, removed lipgloss.Style
}

func newTheme() theme {
	colour := func(name string) lipgloss.Style { return lipgloss.NewStyle().Foreground(lipgloss.Color(name)) }
	return theme{
		user:   lipgloss.NewStyle().Bold(true),
		accent: colour("6"),
		dim:    lipgloss.NewStyle().Faint(true),
		good:   colour("2"), bad: colour("1"), warn: colour("3"),
		added: colour("2"), removed: colour("1"),
	}
}

// each styles every line separately, because lines can be cut or scroll away.
func each(style lipgloss.Style, lines []string) []string {
	styled := make([]string, len(lines))
	for i, line := range lines {
		styled[i] = line
		if line != "" {
			styled[i] = style.Render(line)
		}
	}
	return styled
}
