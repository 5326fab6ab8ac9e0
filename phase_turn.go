package belay

import (
	"slices"

	"github.com/belay-run/belay/hook"
)

// TurnBegun is the input of turn.pre_policy.
type TurnBegun struct{ input[turnBegun] }

type turnBegun struct {
	Text string `json:"text" jsonschema:"the user's text"`
}

// Text is the user's text.
func (t TurnBegun) Text() string { return t.data().Text }

// TurnSoFar is the input of the phases that prepare a turn: the user's text, and everything
// that earlier phases have contributed.
type TurnSoFar struct{ input[turnSoFar] }

type turnSoFar struct {
	Text  string   `json:"text" jsonschema:"the user's text"`
	Tools []string `json:"tools,omitempty" jsonschema:"the names of the tools known so far"`
	soFar
}

// Text is the user's text.
func (t TurnSoFar) Text() string { return t.data().Text }

// Tools are the names of the tools known so far.
func (t TurnSoFar) Tools() []string { return slices.Clone(t.data().Tools) }

// Preflight is the input of turn.post_preflight_prompt_context.
type Preflight struct{ input[preflight] }

type preflight struct {
	turnSoFar
	Plan PreflightPlan `json:"plan" jsonschema:"what to look up before the model is asked"`
}

// PreflightPlan lists what hooks should look up before Belay calls the model.
type PreflightPlan struct {
	// Source is planner, or fallback for a plan that Belay made from the user's text.
	Source string `json:"source" jsonschema:"planner, or fallback: made from the text"`
	// Queries are the texts to look up.
	Queries []string `json:"queries,omitempty" jsonschema:"what to look up"`
}

// Text is the user's text.
func (p Preflight) Text() string { return p.data().Text }

// Plan lists what to look up.
func (p Preflight) Plan() PreflightPlan {
	plan := p.data().Plan
	plan.Queries = slices.Clone(plan.Queries)
	return plan
}

// EndReason says how a turn ended: [EndTurn], [EndMaxSteps], [EndBudget], [EndAborted],
// [EndRefused], [EndBlocked], [EndStuck], [EndParked] or [EndError].
type EndReason string

// The end reasons.
const (
	EndTurn     EndReason = "end_turn"  // the model has answered
	EndMaxSteps EndReason = "max_steps" // the limit on steps was reached
	EndBudget   EndReason = "budget"    // the budget is used up
	EndAborted  EndReason = "aborted"   // the context was cancelled, or the caller left the stream
	EndRefused  EndReason = "refused"   // the model refused to answer
	EndBlocked  EndReason = "blocked"   // a hook or a directive ended the turn
	EndStuck    EndReason = "stuck"     // the model repeated the same calls
	EndParked   EndReason = "parked"    // the turn waits for a person or an external event: see [Session.Resume]
	EndError    EndReason = "error"     // the runtime failed: the caller gets the error
)

// TurnEnded is the input of turn.post_turn.
type TurnEnded struct{ input[turnEnded] }

type turnEnded struct {
	Reason EndReason `json:"reason" jsonschema:"how the turn ended"`
	Steps  int       `json:"steps" jsonschema:"how many steps it took"`
	Usage  Usage     `json:"usage" jsonschema:"tokens and cost of the turn"`
	// Both texts are cut to previewCharacters. With Options.NoPreviews they are empty.
	UserText string `json:"user_text,omitempty" jsonschema:"the beginning of the user's text, at most 2000 characters"`
	Text     string `json:"text,omitempty" jsonschema:"the beginning of the model's last text, at most 2000 characters"`
	soFar
}

// previewCharacters is the maximum length of the texts at turn.post_turn.
const previewCharacters = 2000

// UserText is the beginning of the user's text, at most 2,000 characters. It is empty with
// Options.NoPreviews.
func (t TurnEnded) UserText() string { return t.data().UserText }

// Text is the beginning of the model's last text, at most 2,000 characters. It is empty with
// Options.NoPreviews.
func (t TurnEnded) Text() string { return t.data().Text }

// Reason is how the turn ended.
func (t TurnEnded) Reason() EndReason { return t.data().Reason }

// Steps is how many steps the turn took.
func (t TurnEnded) Steps() int { return t.data().Steps }

// Usage is the number of tokens and the cost of the turn.
func (t TurnEnded) Usage() Usage { return t.data().Usage }

// TurnFailure is the input of the phase error.
type TurnFailure struct{ input[turnFailure] }

type turnFailure struct {
	Class   string `json:"class" jsonschema:"a stable code"`
	Message string `json:"message" jsonschema:"what happened"`
	soFar
}

// Class is the stable code of the failure.
func (f TurnFailure) Class() string { return f.data().Class }

// Message says what happened.
func (f TurnFailure) Message() string { return f.data().Message }

// PromptManifest is the input of turn.post_prompt_compile: the parts of the prompt, without
// their text.
type PromptManifest struct{ input[promptManifest] }

type promptManifest struct {
	Parts []ManifestPart `json:"parts,omitempty" jsonschema:"the parts of the prompt, in order"`
	Size  int            `json:"size" jsonschema:"characters in all"`
	Hash  string         `json:"hash" jsonschema:"the SHA-256 hash of the whole prompt"`
	soFar
}

// ManifestPart is one part of a prompt.
type ManifestPart struct {
	Kind string `json:"kind" jsonschema:"agent, environment, section, context, tools"`
	ID   string `json:"id,omitempty" jsonschema:"the section's or the entry's id"`
	// From is the subscription or extension that the part came from.
	From string `json:"from,omitempty" jsonschema:"the subscription or extension it came from"`
	Size int    `json:"size" jsonschema:"in characters"`
	Hash string `json:"hash" jsonschema:"sha256: of the part"`
}

// Parts are the parts of the prompt, in order.
func (p PromptManifest) Parts() []ManifestPart { return slices.Clone(p.data().Parts) }

// Size is the number of characters of the prompt.
func (p PromptManifest) Size() int { return p.data().Size }

// Hash is the hash of the whole prompt.
func (p PromptManifest) Hash() string { return p.data().Hash }

var _ hook.Output = Note{}
