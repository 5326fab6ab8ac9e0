package belay

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/belay-run/belay/hook"
)

// Note is the answer at an observe phase, and part of every other answer.
type Note struct {
	// Output is shown to users as the hook's output. It is also sent to the model with the
	// next request. It needs the capability audit.
	Output string `json:"output,omitempty" jsonschema:"text shown as the hook's output"`
	// Audit notes are stored in the record of the hook run.
	Audit []hook.Audit `json:"audit,omitempty" jsonschema:"notes for the record; they must not quote the conversation"`
	// Jobs are background work to schedule.
	Jobs []hook.Job `json:"jobs,omitempty" jsonschema:"background work to schedule"`

	shown []shownAt // set only in a merged answer
}

// shownAt is the output of a hook in a merged answer. behind is the number of reminders
// in the merged answer that come before this output.
type shownAt struct {
	Shown

	behind int
}

// Shown is the output of a hook, and the hook's subscription.
type Shown struct{ Text, From string }

// Shown returns the outputs of all hooks, in plan order. Only a merged answer has outputs.
func (n Note) Shown() []Shown {
	var shown []Shown
	for _, s := range n.shown {
		shown = append(shown, s.Shown)
	}
	return shown
}

// Answer returns the note in the form that the hook runtime uses.
func (n Note) Answer() *hook.Answer { return answer(hook.SeverityPass, nil, n) }

// Aside is part of most answers: a note and reminders for the model. At phases that only
// add reminders, it is the whole answer.
type Aside struct {
	Note
	// Context is sent to the model as reminders.
	Context []Reminder `json:"context,omitempty" jsonschema:"reminders for the model"`
}

// Answer returns the aside in the form that the hook runtime uses.
func (a Aside) Answer() *hook.Answer { return answer(hook.SeverityPass, nil, a.Note, a.Context...) }

// Reminder is text sent to the model because of a hook.
type Reminder struct {
	Text string `json:"text" jsonschema:"the text"`
	// Ephemeral reminders are sent to the model once and are not kept in the transcript.
	Ephemeral bool `json:"ephemeral,omitempty" jsonschema:"send it once and do not keep it in the transcript"`
	// From is the subscription that added the reminder. The runtime sets it.
	From string `json:"from,omitempty" jsonschema:"filled in by the runtime"`
}

// Tell returns reminders with the texts.
func Tell(texts ...string) []Reminder {
	reminders := make([]Reminder, len(texts))
	for i, text := range texts {
		reminders[i].Text = text
	}
	return reminders
}

// answer converts an answer to the form that the hook runtime uses. It returns nil for an
// empty answer.
func answer(severity hook.Severity, parts []hook.Part, n Note, context ...Reminder) *hook.Answer {
	if severity == hook.SeverityPass && len(parts) == 0 && n.Output == "" &&
		len(n.Audit) == 0 && len(n.Jobs) == 0 && len(context) == 0 {
		return nil
	}
	for _, r := range context {
		parts = append(parts, hook.Part{Kind: "context", Needs: hook.CanAddContext, Content: r.Text})
	}
	if n.Output != "" {
		parts = append(parts, hook.Part{Kind: "output", Needs: hook.CanAudit, Content: n.Output})
	}
	return &hook.Answer{Severity: severity, Parts: parts, Audit: n.Audit, Jobs: n.Jobs}
}

// contentOf returns the text from which a contribution's hash is computed: the value as
// JSON or, if it cannot be encoded, the name of its type.
func contentOf(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%T", value)
	}
	return string(data)
}

// mergeAside adds the aside of one answer to the merged aside. It copies neither audit
// notes nor jobs: the runtime has already recorded the notes and scheduled the jobs.
func mergeAside(m *hook.Merging, merged, a Aside) Aside {
	for _, r := range a.Context {
		if strings.TrimSpace(r.Text) != "" {
			r.From = m.From
			merged.Context = append(merged.Context, r)
		}
	}
	merged.Note = mergeNote(m, merged.Note, a.Note)
	if a.Output != "" {
		merged.shown[len(merged.shown)-1].behind = len(merged.Context)
	}
	return merged
}

func mergeNote(m *hook.Merging, merged, n Note) Note {
	if n.Output != "" {
		merged.shown = append(merged.shown, shownAt{Shown: Shown{n.Output, m.From}})
	}
	return merged
}
