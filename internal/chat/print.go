package chat

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
)

// kind says what was printed, for the space between one thing and the next.
type kind int

const (
	kindNothing kind = iota
	kindText         // blocks of text, apart from each other
	kindUser         // what the person said
	kindLine         // lines about calls, hooks and other events, close together
)

// printedMsg says that what was handed to the terminal is printed.
type printedMsg struct{}

// printer hands lines to the terminal in order, a page at a time.
type printer func(pages []string) tea.Cmd

// printAbove prints above the view. The pages are messages of one sequence,
// because commands of their own would overtake each other.
func printAbove(pages []string) tea.Cmd {
	cmds := make([]tea.Cmd, 0, len(pages)+1)
	for _, page := range pages {
		cmds = append(cmds, tea.Println(page))
	}
	return tea.Sequence(append(cmds, func() tea.Msg { return printedMsg{} })...)
}

// say prints finished lines above the view, for good.
func (m *model) say(k kind, lines ...string) {
	if m.said != kindNothing && (k != kindLine || m.said != kindLine) {
		m.out = append(m.out, "")
	}
	m.append(k, lines...)
}

// append prints lines right behind what was printed last.
func (m *model) append(k kind, lines ...string) {
	m.said = k
	m.out = append(m.out, lines...)
}

// print hands over what waits, once the terminal has taken what came before.
func (m *model) print() tea.Cmd {
	if m.printing || len(m.out) == 0 || !m.drawn {
		return nil
	}
	var pages []string
	for page := range slices.Chunk(m.out, m.page()) {
		text := m.toned(strings.Join(page, "\n"))
		if text == "" {
			text = " " // nothing would print nothing
		}
		pages = append(pages, text)
	}
	m.out, m.printing = nil, true
	return m.printer(pages)
}

// page is how many lines are printed at a time. The view leaves as much of the
// screen free: what is printed pushes it down, and never off the screen into the
// scrollback.
func (m *model) page() int { return max(m.height/3, 1) }

// toned takes out of a text the colours that the terminal does not have. The view
// is toned by its renderer, what is printed is not.
func (m *model) toned(text string) string {
	var b strings.Builder
	w := colorprofile.Writer{Forward: &b, Profile: m.look.profile}
	if _, err := w.WriteString(text); err != nil {
		return text
	}
	return b.String()
}
