package belay

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay/hook"
)

// ReminderKind says why the model is told something.
type ReminderKind string

// The kinds of reminders.
const (
	ReminderContext  ReminderKind = "context"  // a hook adds it
	ReminderOutput   ReminderKind = "output"   // a hook shows it
	ReminderBlocked  ReminderKind = "blocked"  // a hook stopped something
	ReminderRuntime  ReminderKind = "runtime"  // the loop itself has something to say
	ReminderStanding ReminderKind = "standing" // the session's own, in every request
)

// PendingReminder is a reminder that no request has carried yet.
type PendingReminder struct {
	Reminder
	Kind ReminderKind `json:"kind"`
}

// ReminderSettings are a session's own. What was blocked or denied is always
// told.
type ReminderSettings struct {
	// Standing is told in every request, last.
	Standing string `json:"standing,omitempty"`
	// HideOutput and HideContext keep what hooks show and add from the model.
	HideOutput  bool `json:"hide_output,omitempty"`
	HideContext bool `json:"hide_context,omitempty"`
}

// hear keeps what a hook's answer says besides for the next request, and its
// diagnostics for the end of the turn.
func (t *turn) hear(a Aside, diagnostics []hook.Diagnostic) {
	t.session.state.Pending = t.aside(t.session.state.Pending, a)
	t.clean = t.clean && len(a.Context) == 0 && len(a.shown) == 0
	t.diagnostics = append(t.diagnostics, t.showFailures(diagnostics)...)
}

// appendAside adds what hooks said, in plan order.
func appendAside(pending []PendingReminder, a Aside) []PendingReminder {
	next := 0
	for i, r := range a.Context {
		for ; next < len(a.shown) && a.shown[next].behind <= i; next++ {
			pending = append(pending, a.shown[next].pending())
		}
		pending = append(pending, PendingReminder{r, ReminderContext})
	}
	for _, s := range a.shown[next:] {
		pending = append(pending, s.pending())
	}
	return pending
}

func (s shownAt) pending() PendingReminder {
	return PendingReminder{Reminder{Text: s.Text, From: s.From}, ReminderOutput}
}

// tell adds what the loop itself, or a hook by blocking, has to say.
func (t *turn) tell(kind ReminderKind, from, text string) {
	t.session.state.Pending = append(t.session.state.Pending, PendingReminder{Reminder{Text: text, From: from}, kind})
}

// render is the reminder as the model reads it.
func (r PendingReminder) render() string {
	text := strings.TrimSpace(r.Text)
	switch r.Kind {
	case ReminderOutput:
		text = fmt.Sprintf("Output of hook %q:\n%s", r.From, text)
	case ReminderBlocked:
		text = fmt.Sprintf("Blocked by hook %q: %s", r.From, text)
	case ReminderContext, ReminderRuntime, ReminderStanding:
	}
	return openReminder + closesReminder.ReplaceAllString(text, `<$1\/$2`) + closeReminder
}

// closesReminder finds what a model could take for the end of the element.
var closesReminder = regexp.MustCompile(`(?i)<(\s*)/(\s*system-reminder)`)

// The element that reminders come in. A text cannot close it.
const (
	openReminder  = "<system-reminder>\n"
	closeReminder = "\n</system-reminder>"
)

// delivery is the reminders of one request.
type delivery struct {
	stored    []Part // become part of the transcript with the response
	ephemeral []Part
	diags     []hook.Diagnostic
}

// deliver renders reminders in order. Identical ones are told once. What is over
// the limit is left out, but never what was blocked.
func deliver(pending []PendingReminder, settings ReminderSettings, limit int) delivery {
	var d delivery
	if len(pending) == 0 && settings.Standing == "" {
		return d
	}
	seen := make(map[string]bool, len(pending))
	lasting := make(map[string]bool, len(pending)) // told for good, whatever is told for once
	for _, r := range pending {
		if !r.Ephemeral {
			lasting[r.render()] = true
		}
	}
	room := limit
	dropped := 0
	for _, r := range pending {
		if r.Kind == ReminderOutput && settings.HideOutput || r.Kind == ReminderContext && settings.HideContext {
			continue
		}
		text := r.render()
		if seen[text] || r.Ephemeral && lasting[text] {
			continue
		}
		seen[text] = true
		size := utf8.RuneCountInString(text)
		if size > room && r.Kind != ReminderBlocked && r.Kind != ReminderRuntime {
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
		standing := PendingReminder{Reminder{Text: settings.Standing}, ReminderStanding}
		d.ephemeral = append(d.ephemeral, Part{Type: PartText, Text: standing.render(), IsReminder: true})
	}
	if dropped > 0 {
		d.diags = append(d.diags, hook.Diagnostic{
			Code: hook.CodeReminderDropped, Level: hook.CodeReminderDropped.Level(),
			Message: fmt.Sprintf("%d reminders did not fit into %d characters", dropped, limit),
		})
	}
	return d
}
