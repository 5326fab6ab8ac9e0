package belay

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/belay-run/belay/hook"
)

// Note is the answer at an observe phase, and part of every other answer.
type Note struct {
	// Output is shown to people as the hook's output, and to the model with its
	// next request. Like an audit note it takes the capability audit.
	Output string `json:"output,omitempty" jsonschema:"text shown as the hook's output"`
	// Audit notes go into the record of the run.
	Audit []hook.Audit `json:"audit,omitempty" jsonschema:"notes for the record; they must quote nothing of what was said"`
	// Jobs are background work to schedule.
	Jobs []hook.Job `json:"jobs,omitempty" jsonschema:"background work to schedule"`

	shown []shownAt // of a merged answer
}

// shownAt is what a hook showed, and how many of the merged answer's reminders
// come before it.
type shownAt struct {
	Shown

	behind int
}

// Shown is what a hook showed, and the subscription it is from.
type Shown struct{ Text, From string }

// Shown lists what hooks showed, in plan order. It is filled in a merged
// answer.
func (n Note) Shown() []Shown {
	var shown []Shown
	for _, s := range n.shown {
		shown = append(shown, s.Shown)
	}
	return shown
}

// Answer reports what the note asks for.
func (n Note) Answer() *hook.Answer { return answer(hook.SeverityPass, nil, n) }

// Aside is what an answer can say besides: a note, and something the model is
// told. It is the whole answer at phases that only add reminders.
type Aside struct {
	Note
	// Context is told to the model.
	Context []Reminder `json:"context,omitempty" jsonschema:"told to the model"`
}

// Answer reports what the aside asks for.
func (a Aside) Answer() *hook.Answer { return answer(hook.SeverityPass, nil, a.Note, a.Context...) }

// Reminder is text told to the model because of a hook.
type Reminder struct {
	Text string `json:"text" jsonschema:"the text"`
	// Ephemeral ones reach the model once and are not kept in the transcript.
	Ephemeral bool `json:"ephemeral,omitempty" jsonschema:"tell it once and do not keep it in the transcript"`
	// From is the subscription it is from. The runtime fills it in.
	From string `json:"from,omitempty" jsonschema:"filled in by the runtime"`
}

// Tell makes reminders of texts.
func Tell(texts ...string) []Reminder {
	reminders := make([]Reminder, len(texts))
	for i, text := range texts {
		reminders[i].Text = text
	}
	return reminders
}

// answer puts together what an output asks for: nil if it asks for nothing.
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

// contentOf is the text that a contribution's hash is made of: its JSON form,
// or its type if it has none.
func contentOf(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%T", value)
	}
	return string(data)
}

// mergeAside adds what an answer says besides. Audit notes are in the record
// and jobs are scheduled by then, so neither is carried on.
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
