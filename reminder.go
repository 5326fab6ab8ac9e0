package belay

import (
	"fmt"
	"regexp"
	"strings"
)

// reminderKind is why a reminder is sent.
type reminderKind string

// The kinds of reminders.
const (
	reminderContext  reminderKind = "context"  // context added by a hook
	reminderOutput   reminderKind = "output"   // output of a hook
	reminderBlocked  reminderKind = "blocked"  // a hook blocked something
	reminderRuntime  reminderKind = "runtime"  // a message of the loop itself
	reminderStanding reminderKind = "standing" // the session's standing reminder, in every request
)

// PendingReminder is a reminder that no request has included yet.
type PendingReminder struct {
	Reminder
	Kind reminderKind `json:"kind"`
}

// ReminderSettings are a session's settings for reminders. Messages about blocked and
// denied things are always sent.
type ReminderSettings struct {
	// Standing is sent with every request, as the last reminder.
	Standing string `json:"standing,omitempty"`
	// HideOutput and HideContext keep the output and the context of hooks from the model.
	HideOutput  bool `json:"hide_output,omitempty"`
	HideContext bool `json:"hide_context,omitempty"`
}

// render returns the reminder in the form that the model reads.
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

// closesReminder finds text that a model could take for the end of the element.
var closesReminder = regexp.MustCompile(`(?i)<(\s*)/(\s*system-reminder)`)

// The element around a reminder. The text of a reminder cannot close it.
const (
	openReminder  = "<system-reminder>\n"
	closeReminder = "\n</system-reminder>"
)
