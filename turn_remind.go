package belay

import (
	"fmt"
	"unicode/utf8"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// keepAside keeps the reminders and outputs of hooks for the next request, and their
// diagnostics for the end of the turn.
func (t *turn) keepAside(a Aside, diagnostics []hook.Diagnostic) {
	t.session.state.Pending = t.addAside(t.session.state.Pending, a)
	t.write.clean = t.write.clean && len(a.Context) == 0 && len(a.shown) == 0
	t.diagnostics = append(t.diagnostics, t.showFailures(diagnostics)...)
}

// appendAside adds the reminders and outputs of hooks to pending, in plan order.
func appendAside(pending []PendingReminder, a Aside) []PendingReminder {
	next := 0
	for i, r := range a.Context {
		for ; next < len(a.shown) && a.shown[next].behind <= i; next++ {
			pending = append(pending, a.shown[next].pending())
		}
		pending = append(pending, PendingReminder{r, reminderContext})
	}
	for _, s := range a.shown[next:] {
		pending = append(pending, s.pending())
	}
	return pending
}

func (s shownAt) pending() PendingReminder {
	return PendingReminder{Reminder{Text: s.Text, From: s.From}, reminderOutput}
}

// addReminder adds a reminder from Belay itself, or from a hook that blocked something.
func (t *turn) addReminder(kind reminderKind, from, text string) {
	t.session.state.Pending = append(t.session.state.Pending, PendingReminder{Reminder{Text: text, From: from}, kind})
}

// delivery holds the reminders that one request sends.
type delivery struct {
	stored    []Part // these are stored in the transcript with the response
	ephemeral []Part
	diags     []hook.Diagnostic
}

// deliver renders reminders in order, without duplicates and without the kinds that the
// settings hide. The standing reminder comes last. deliver leaves out reminders that do not
// fit into the limit, but never reminders about blocked actions or from Belay itself.
func deliver(pending []PendingReminder, settings ReminderSettings, limit int) delivery {
	var d delivery
	if len(pending) == 0 && settings.Standing == "" {
		return d
	}
	seen := make(map[string]bool, len(pending))
	lasting := make(map[string]bool, len(pending)) // a stored reminder replaces an ephemeral one with the same text
	for _, r := range pending {
		if !r.Ephemeral {
			lasting[r.render()] = true
		}
	}
	room := limit
	dropped := 0
	for _, r := range pending {
		if r.Kind == reminderOutput && settings.HideOutput || r.Kind == reminderContext && settings.HideContext {
			continue
		}
		text := r.render()
		if seen[text] || r.Ephemeral && lasting[text] {
			continue
		}
		seen[text] = true
		size := utf8.RuneCountInString(text)
		if size > room && r.Kind != reminderBlocked && r.Kind != reminderRuntime {
			dropped++
			continue
		}
		room -= size
		part := Part{Type: PartText, Text: text, IsReminder: true}
		if r.Ephemeral {
			d.ephemeral = append(d.ephemeral, part)
		} else {
			d.stored = append(d.stored, part)
		}
	}
	if settings.Standing != "" {
		standing := PendingReminder{Reminder{Text: settings.Standing}, reminderStanding}
		d.ephemeral = append(d.ephemeral, Part{Type: PartText, Text: standing.render(), IsReminder: true})
	}
	if dropped > 0 {
		d.diags = append(d.diags, hook.Diagnostic{
			Code: codes.ReminderDropped, Level: codes.ReminderDropped.Level(),
			Message: fmt.Sprintf("%d reminders were not sent: the reminders of one request may have %d characters in total", dropped, limit),
		})
	}
	return d
}
