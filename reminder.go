package belay

import (
	"fmt"
	"strings"

	"github.com/belay-run/belay/internal/lazyregexp"
)

// reminderKind says why a reminder is sent.
type reminderKind string

// The kinds of reminders.
const (
	reminderContext  reminderKind = "context"  // context added by a hook
	reminderOutput   reminderKind = "output"   // output of a hook
	reminderBlocked  reminderKind = "blocked"  // a hook blocked something
	reminderRuntime  reminderKind = "runtime"  // a message of Belay itself
	reminderStanding reminderKind = "standing" // the session's standing reminder, in every request
)

// PendingReminder is a reminder that has not been sent to the model yet.
type PendingReminder struct {
	Reminder
	Kind reminderKind `json:"kind"`
}

// ReminderSettings are a session's settings for reminders. They do not affect messages
// about blocked or denied actions.
type ReminderSettings struct {
	// Standing is sent with every request, as the last reminder.
	Standing string `json:"standing,omitempty"`
	// HideOutput keeps the output of hooks from the model. HideContext does the same with
	// the context that hooks add.
	HideOutput  bool `json:"hide_output,omitempty"`
	HideContext bool `json:"hide_context,omitempty"`
}

// render returns the reminder as text for the model.
func (r PendingReminder) render() string {
	text := strings.TrimSpace(r.Text)
	switch r.Kind {
	case reminderOutput:
		text = fmt.Sprintf("Output of hook %q:\n%s", r.From, text)
	case reminderBlocked:
		text = fmt.Sprintf("Blocked by hook %q: %s", r.From, text)
	case reminderContext, reminderRuntime, reminderStanding:
	}
	return openReminder + closesReminder.ReplaceAllString(text, `<$1\/$2`) + closeReminder
}

// closesReminder finds text that a model could read as the end of the element.
var closesReminder = lazyregexp.New(`(?i)<(\s*)/(\s*system-reminder)`)

// The element around a reminder. render makes sure that the text cannot close the element.
const (
	openReminder  = "<system-reminder>\n"
	closeReminder = "\n</system-reminder>"
)
