package chat

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/belay-run/belay/internal/visible"
)

// Job is a command in the background.
type Job struct {
	ID, Command string
	Started     time.Time
	// Ended is zero while the command runs. End says how it ended, such as "exit code 1".
	Ended time.Time
	End   string
}

// about says whether a command runs.
func (j *Job) about(now time.Time) string {
	if j.Ended.IsZero() {
		return "running for " + took(now.Sub(j.Started)) + " · " + j.ID
	}
	return fmt.Sprintf("%s after %s · %s", j.End, took(j.Ended.Sub(j.Started)), j.ID)
}

// jobLines is how many of the last lines of a command's output are shown.
const jobLines = 40

// chooseJob lists the commands in the background, the last started first. The user can look at
// the output of one, or stop it, also while a turn runs.
func (m *model) chooseJob() tea.Cmd {
	c := &m.controls
	if c.Jobs == nil {
		m.elsewhere("/jobs")
		return nil
	}
	session, now := m.opening.session, m.now
	jobs := c.Jobs(session)
	if len(jobs) == 0 {
		m.note(m.look.dim.Render("∙"), "no command runs in the background")
		return nil
	}
	running := make(map[string]bool)
	choices := make([]Choice, len(jobs))
	for i := range jobs {
		j := &jobs[len(jobs)-1-i]
		running[j.ID] = j.Ended.IsZero()
		choices[i] = Choice{ID: j.ID, Name: visible.OneLine(j.Command), About: j.about(now)}
	}
	look := func(id string) []string {
		lines, _ := m.tailOf(session, id, previewLines) // an error is shown when the entry is chosen
		return lines
	}
	return m.offer("Commands in the background", "", look, func() ([]Choice, error) { return choices, nil }, func(id string) tea.Cmd {
		if !running[id] {
			return m.showJob(session, id)
		}
		return m.offer("Command "+id, "", nil, func() ([]Choice, error) {
			return []Choice{{ID: "show", Name: "show its output"}, {ID: "stop", Name: "stop it"}}, nil
		}, func(what string) tea.Cmd {
			if what == "show" {
				return m.showJob(session, id)
			}
			return func() tea.Msg {
				if err := c.StopJob(context.Background(), session, id); err != nil {
					return noteMsg(err.Error())
				}
				return noteMsg("stopped command " + id)
			}
		})
	})
}

// showJob prints the last lines of the output of a command.
func (m *model) showJob(session, id string) tea.Cmd {
	lines, err := m.tailOf(session, id, jobLines)
	if err != nil {
		m.note(m.look.bad.Render("✗"), err.Error())
		return nil
	}
	m.say(kindLine, m.look.dim.Render(short("the last output of command "+id+":", m.width-1)))
	for _, line := range lines {
		m.append(kindLine, m.look.dim.Render("  │ "+cutTo(line, m.width-6)))
	}
	return nil
}

// tailOf returns the last lines of the output of a command.
func (m *model) tailOf(session, id string, most int) ([]string, error) {
	output, err := m.controls.JobOutput(session, id)
	if err != nil {
		return nil, err
	}
	output = strings.TrimRight(visible.Clean(output), "\n")
	if output == "" {
		return []string{"(no output yet)"}, nil
	}
	lines := strings.Split(output, "\n")
	return lines[max(len(lines)-most, 0):], nil
}

// addDir lets the agent use one more directory.
func (m *model) addDir(dir string) {
	switch {
	case m.controls.AddDir == nil:
		m.elsewhere("/add-dir")
	case dir == "":
		m.note(m.look.warn.Render("∙"), "name a directory: /add-dir ../other")
	default:
		said, err := m.controls.AddDir(dir)
		if err != nil {
			m.note(m.look.bad.Render("✗"), err.Error())
			return
		}
		m.note(m.look.accent.Render("∙"), said)
	}
}
