package chat

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/sahilm/fuzzy"
)

// filesFresh is how long a list of files is used before it is made again.
const filesFresh = 5 * time.Second

// mostFound limits how many files are offered.
const mostFound = 50

// fileList has the files of the project, for completion.
type fileList struct {
	paths   []string
	at      time.Time // when the list was made
	loading bool
}

// filesMsg has the files of the project.
type filesMsg []string

// want returns a command that lists the files, unless the list is fresh.
func (f *fileList) want(m *model) tea.Cmd {
	if f.loading || !f.at.IsZero() && m.now.Sub(f.at) < filesFresh {
		return nil
	}
	f.loading = true
	list := m.controls.Files
	return func() tea.Msg {
		paths, _ := list(context.Background()) // ignore errors: the user can type the path
		return filesMsg(paths)
	}
}

func (f *fileList) listed(paths filesMsg, now time.Time) {
	f.paths, f.at, f.loading = paths, now, false
}

// find returns the files that match a search, the best first.
func (f *fileList) find(search string) []Directive {
	var found []Directive
	if search == "" {
		for _, path := range f.paths[:min(len(f.paths), mostFound)] {
			found = append(found, Directive{Name: path})
		}
		return found
	}
	for _, match := range fuzzy.Find(search, f.paths) {
		if len(found) == mostFound {
			break
		}
		found = append(found, Directive{Name: match.Str})
	}
	return found
}

// at returns the text between an @ and the cursor. The @ begins a word.
func (e *editor) at() (search string, ok bool) {
	line := e.beforeCursor()
	at := strings.LastIndexByte(line, '@')
	if at < 0 || at > 0 && line[at-1] != ' ' || strings.ContainsAny(line[at:], " :") {
		return "", false
	}
	return line[at+1:], true
}

// beforeCursor returns the line of the cursor, up to the cursor.
func (e *editor) beforeCursor() string {
	lines := strings.Split(e.area.Value(), "\n")
	line := []rune(lines[min(e.area.Line(), len(lines)-1)])
	return string(line[:min(e.area.Column(), len(line))])
}

// complete replaces the text between the @ and the cursor.
func (e *editor) complete(path string) {
	search, ok := e.at()
	if !ok {
		return
	}
	for range []rune(search) {
		e.area, _ = e.area.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
	}
	e.area.InsertString(path + " ")
}
