package chat

import (
	"context"

	tea "charm.land/bubbletea/v2"
)

// chooseMessage lets the user choose an earlier message, and then what to go back with.
func (m *model) chooseMessage() tea.Cmd {
	c := &m.controls
	if c.Messages == nil || c.Rewind == nil {
		m.elsewhere("/rewind")
		return nil
	}
	if m.working {
		m.note(m.look.warn.Render("∙"), "wait for the end of the turn, or abort it with ctrl+c")
		return nil
	}
	session := m.opening.session
	return m.offer("Go back to before", "", nil, func() ([]Choice, error) {
		all, err := c.Messages(context.Background(), session)
		for i := range all {
			all[i].Name = asTyped(all[i].Name)
		}
		return all, err
	}, func(at string) tea.Cmd {
		return m.offer("Go back with", "", nil, func() ([]Choice, error) {
			plan, err := c.RewindPlan(context.Background(), session, at)
			if err != nil {
				return nil, err
			}
			return []Choice{
				{ID: "files", Name: "conversation and files", About: plan},
				{ID: "keep", Name: "conversation only", About: "the files stay as they are"},
			}, nil
		}, func(what string) tea.Cmd {
			m.work("going back")
			n := m.number
			return func() tea.Msg { m.host.rewind(n, at, what == "keep"); return nil }
		})
	})
}

// rewind goes back to an earlier message. No turn runs meanwhile.
func (r *runner) rewind(_ int, at string, keepFiles bool) {
	r.turns.Go(func() {
		next, text, err := r.chat.opts.Controls.Rewind(r.ctx, r.session.ID(), at, keepFiles)
		if err != nil {
			r.tell(openedMsg{err: err})
			return
		}
		o := r.chat.open(r.ctx, next)
		r.session = next
		r.tell(openedMsg{opening: o, typed: text})
	})
}
