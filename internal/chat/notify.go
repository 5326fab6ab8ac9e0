package chat

import (
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// notify rings the bell and shows a notification of the desktop (OSC 9) when the chat begins to
// wait for a user who is in another window: for a question, and at the end of a turn.
func (m *model) notify() tea.Cmd {
	asks := len(m.desk.waiting) > 0
	waits := asks || !m.working
	began := waits && !m.waited
	m.waited = waits
	if !began || !m.away || m.leaving {
		return nil
	}
	text := "belay: the turn has ended"
	if asks {
		text = "belay: a question waits for your answer"
	}
	return tea.Raw(ansi.Notify(text) + "\a")
}
