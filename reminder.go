package belay

import (
	"fmt"
	"regexp"
	"strings"
)

// ReminderKind says why the model is told something.
type reminderKind string

// The kinds of reminders.
const (
	reminderContext  reminderKind = "context"  // a hook adds it
	reminderOutput   reminderKind = "output"   // a hook shows it
	reminderBlocked  reminderKind = "blocked"  // a hook stopped something
	reminderRuntime  reminderKind = "runtime"  // the loop itself has something to say
	reminderStanding reminderKind = "standing" // the session's own, in every request
)

// PendingReminder is a reminder that no request has carried yet.
type PendingReminder struct {
	Reminder
	Kind reminderKind `json:"kind"`
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

// render is the reminder as the model reads it.
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

// closesReminder finds what a model could take for the end of the element.
var closesReminder = regexp.MustCompile(`(?i)<(\s*)/(\s*system-reminder)`)

// The element that reminders come in. A text cannot close it.
const (
	openReminder  = "<system-reminder>\n"
	closeReminder = "\n</system-reminder>"
)
