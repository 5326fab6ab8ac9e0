package chat

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
)

// kind is a kind of printed output. It decides where blank lines are printed.
type kind int

const (
	kindNothing kind = iota
	kindText         // blocks of text, separated by blank lines
	kindUser         // text of the user
	kindLine         // lines about calls, hooks and other events, without blank lines between them
)

// printedMsg means that the terminal has printed all pages.
type printedMsg struct{}

// printer prints pages in order, and then sends a printedMsg.
type printer func(pages []string) tea.Cmd

// printAbove prints pages above the view. It uses one sequence, because separate commands
// could run in any order.
func printAbove(pages []string) tea.Cmd {
	cmds := make([]tea.Cmd, 0, len(pages)+1)
	for _, page := range pages {
		cmds = append(cmds, tea.Println(page))
	}
	return tea.Sequence(append(cmds, func() tea.Msg { return printedMsg{} })...)
}

// say prints finished lines above the view. They are not redrawn later. A blank line
// separates them from other output.
func (m *model) say(k kind, lines ...string) {
	if m.said != kindNothing && (k != kindLine || m.said != kindLine) {
		m.out = append(m.out, "")
	}
	m.append(k, lines...)
}

// append prints lines without a blank line before them.
func (m *model) append(k kind, lines ...string) {
	m.said = k
	m.out = append(m.out, lines...)
}

// print prints the waiting lines, unless the terminal is still printing earlier ones.
func (m *model) print() tea.Cmd {
	if m.printing || len(m.out) == 0 || !m.drawn {
		return nil
	}
	var pages []string
	for page := range slices.Chunk(m.out, m.page()) {
		text := m.toned(strings.Join(page, "\n"))
		if text == "" {
			text = " " // the terminal prints nothing for an empty page
		}
		pages = append(pages, text)
	}
	m.out, m.printing = nil, true
	return m.printer(pages)
}

// page returns how many lines are printed at a time. The view leaves the same number of
// lines of the screen free, so that printing never moves the view into the scrollback.
func (m *model) page() int { return max(m.height/3, 1) }

// toned removes colours that the terminal does not support. The renderer of bubbletea does
// this only for the view.
func (m *model) toned(text string) string {
	var b strings.Builder
	w := colorprofile.Writer{Forward: &b, Profile: m.look.profile}
	if _, err := w.WriteString(text); err != nil {
		return text
	}
	return b.String()
}
