package chat

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
)

// kind is the kind of printed output, for the space between outputs.
type kind int

const (
	kindNothing kind = iota
	kindText         // blocks of text, apart from each other
	kindUser         // text of the person
	kindLine         // lines about calls, hooks and other events, close together
)

// printedMsg means that the terminal has printed the last page.
type printedMsg struct{}

// printer sends lines to the terminal in order, one page at a time.
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

// append prints lines directly after the last output.
func (m *model) append(k kind, lines ...string) {
	m.said = k
	m.out = append(m.out, lines...)
}

// print sends the waiting lines, once the terminal has printed the earlier
// ones.
func (m *model) print() tea.Cmd {
	if m.printing || len(m.out) == 0 || !m.drawn {
		return nil
	}
	var pages []string
	for page := range slices.Chunk(m.out, m.page()) {
		text := m.toned(strings.Join(page, "\n"))
		if text == "" {
			text = " " // an empty print would show nothing
		}
		pages = append(pages, text)
	}
	m.out, m.printing = nil, true
	return m.printer(pages)
}

// page is how many lines are printed at a time. The view leaves that much of the
// screen free, so that printing never pushes it into the scrollback.
func (m *model) page() int { return max(m.height/3, 1) }

// toned removes colours that the terminal does not support. The renderer does
// this for the view, but not for printed lines.
func (m *model) toned(text string) string {
	var b strings.Builder
	w := colorprofile.Writer{Forward: &b, Profile: m.look.profile}
	if _, err := w.WriteString(text); err != nil {
		return text
	}
	return b.String()
}
