package chat

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"github.com/belay-run/belay"
)

// Rig is a chat without a terminal, for measurements: they pass it events and keys, and draw its
// views. A Rig starts no turns. Only one goroutine at a time may use it.
type Rig struct{ m *model }

// NewRig opens a session as [Chat.Run] does, on a screen of this size.
func NewRig(ctx context.Context, c *Chat, s Session, width, height int) *Rig {
	r := &Rig{newRunner(ctx, c, s, c.open(ctx, s)).model}
	r.m.drawn, r.m.printer = true, func([]string) tea.Cmd { return nil }
	r.update(tea.WindowSizeMsg{Width: width, Height: height})
	return r
}

// Show passes events of a turn. What the chat prints above its view is dropped.
func (r *Rig) Show(events ...belay.Event) { r.update(eventsMsg(events)) }

// Press passes a key and returns the view after it.
func (r *Rig) Press(key tea.Key) tea.View {
	r.update(tea.KeyPressMsg(key))
	return r.m.View()
}

func (r *Rig) update(msg tea.Msg) {
	r.m.Update(msg)
	r.m.printing = false // there is no terminal to wait for
}
