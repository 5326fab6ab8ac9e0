package chat

import (
	"charm.land/lipgloss/v2"
)

// theme holds the styles. It uses the terminal's own sixteen colours, and never
// uses colour alone to convey meaning.
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

// each styles every line by itself, so that a line can be cut or scrolled away.
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
