package backtest

import (
	"bytes"
	"encoding/json"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/redact"
)

// Report is the result of a backtest.
type Report struct {
	// Sessions, Prompts, Calls and Results count what was replayed. Prompts are user
	// messages.
	Sessions int `json:"sessions"`
	Prompts  int `json:"prompts"`
	Calls    int `json:"calls"`
	Results  int `json:"results"`
	// Differences are the messages, calls and results whose outcome would differ, in the
	// order of the sessions and their messages.
	Differences []Difference `json:"differences"`
	// Omitted is how many more differences there are: see [Options].
	Omitted int `json:"omitted,omitempty"`
	// Hooks are the totals of each hook, and of the floor.
	Hooks []HookTotal `json:"hooks"`
	// NotAsked are hooks that were not asked. Unknown is how many calls and messages such a
	// hook had denied, asked about, approved, answered or rewritten, and nothing else leads to
	// another outcome now: their outcome cannot be known.
	NotAsked []NotAsked `json:"not_asked,omitempty"`
	Unknown  int        `json:"unknown,omitempty"`
	// NotReplayed counts calls that cannot be replayed, by the reason.
	NotReplayed map[string]int `json:"not_replayed,omitempty"`
	// Notes say what explains many of the differences, such as a gate that denies everything
	// because its directory is not trusted. Run leaves it empty: the program that assembles the
	// policy adds them.
	Notes []string `json:"notes,omitempty"`
	// Took is how long the backtest ran.
	Took hook.Latency `json:"took"`
}

// NotAsked is a hook that was not asked, and why.
type NotAsked struct {
	Phase string `json:"phase"`
	ID    string `json:"id"`
	Why   string `json:"why"`
	// Idle says that nothing waits for the hook: it decides nothing, and no outcome is unknown
	// because of it.
	Idle bool `json:"idle,omitempty"`
}

// Kind is what a Difference is about.
type Kind string

// The kinds of differences.
const (
	KindPrompt Kind = "prompt" // a user message
	KindCall   Kind = "call"   // a tool call
	KindResult Kind = "result" // the result of a tool call
)

// Difference is something whose outcome would differ. Its inputs, texts and reasons have no
// secrets that can be recognised: people keep reports in repositories. The outcomes were compared
// with the secrets.
type Difference struct {
	Kind    Kind   `json:"kind"`
	Session string `json:"session"`
	Turn    string `json:"turn"`
	Step    int    `json:"step,omitempty"`
	Agent   string `json:"agent,omitempty"`
	// Message is the number of the message that has the text or the call.
	Message int64 `json:"message"`
	// Call, Tool and Input describe the call. Input is what the model sent.
	Call  string          `json:"call,omitempty"`
	Tool  string          `json:"tool,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
	// Text is the text that the user typed.
	Text string `json:"text,omitempty"`
	// Was is what happened. Now is what would happen.
	Was Outcome `json:"was"`
	Now Outcome `json:"now"`
	// Note explains a difference that the outcomes do not explain.
	Note string `json:"note,omitempty"`
}

// Word is an outcome in one word.
type Word string

// The outcomes. A call is allowed, asked about or denied; Halted also ends the turn. A user
// message is allowed, denied or answered by a hook. A result is kept.
const (
	Allowed  Word = "allowed"
	Asked    Word = "asked"
	Denied   Word = "denied"
	Halted   Word = "halted"
	Answered Word = "answered"
	Kept     Word = "kept"
)

// Outcome is what happened, or would happen, to a message, a call or a result.
type Outcome struct {
	Outcome Word `json:"outcome"`
	// By is the hook, or the part of the floor, that decided. Reason is its reason.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Approved and Refused name who answered the question, if Outcome is "asked": a person
	// or a hook. Both are empty if nobody has answered.
	Approved string `json:"approved,omitempty"`
	Refused  string `json:"refused,omitempty"`
	// Input is the rewritten input of a call. Text is the rewritten text of a message or a
	// result, or the answer to a message. RewrittenBy are the hooks that rewrote it.
	Input       json.RawMessage `json:"input,omitempty"`
	Text        *string         `json:"text,omitempty"`
	RewrittenBy []string        `json:"rewritten_by,omitempty"`

	granted bool // an earlier approval covered the call
}

// refused reports whether the outcome is a denial.
func (o *Outcome) refused() bool { return o.Outcome == Denied || o.Outcome == Halted }

// redact removes secrets from what the difference shows. If the outcomes then look the same, a note
// says so.
func (d *Difference) redact() {
	same := d.Was.looksLike(&d.Now)
	d.Input, d.Text = redact.JSON(d.Input), redact.Text(d.Text)
	d.Was.redact()
	d.Now.redact()
	if !same && d.Note == "" && d.Was.looksLike(&d.Now) {
		d.Note = "the outcomes differ in a part that is not shown, because it looks like a secret"
	}
}

// redact removes secrets from what the outcome shows.
func (o *Outcome) redact() {
	o.Input, o.Reason = redact.JSON(o.Input), redact.Text(o.Reason)
	if o.Text != nil {
		text := redact.Text(*o.Text) // the transcript may have the other text
		o.Text = &text
	}
}

// looksLike reports whether two outcomes show the same input and text.
func (o *Outcome) looksLike(other *Outcome) bool {
	if o.Outcome != other.Outcome || !bytes.Equal(o.Input, other.Input) || (o.Text == nil) != (other.Text == nil) {
		return false
	}
	return o.Text == nil || *o.Text == *other.Text
}
