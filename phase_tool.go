package belay

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay/hook"
)

// ToolCall is the input of tool.pre: a tool call that has not started.
type ToolCall struct{ input[toolCall] }

type toolCall struct {
	ID       string  `json:"id" jsonschema:"the call's id"`
	Tool     string  `json:"tool" jsonschema:"the tool's name"`
	Input    rawJSON `json:"input" jsonschema:"the tool's input"`
	Original rawJSON `json:"original,omitempty" jsonschema:"the input that the model sent, if it was rewritten or got defaults"`
	soFar

	tool *boundTool // nil outside a turn
}

func (c *toolCall) part() string { return c.ID }

// ID is the call's id.
func (c ToolCall) ID() string { return c.data().ID }

// Tool is the tool's name.
func (c ToolCall) Tool() string { return c.data().Tool }

// Input is the tool's input. Earlier hooks may have rewritten it.
func (c ToolCall) Input() json.RawMessage { return json.RawMessage(c.data().Input) }

// Original is the input that the model sent.
func (c ToolCall) Original() json.RawMessage {
	if d := c.data(); d.Original != "" {
		return json.RawMessage(d.Original)
	}
	return c.Input()
}

// Decode decodes the input into a struct like encoding/json, but it returns an error if two
// keys are equal or differ only in case. A missing key leaves its field unchanged. A gate
// should treat a missing key as an error too.
func (c ToolCall) Decode(into any) error { return c.data().Input.decode(into) }

func (c ToolCall) rewritten(v ToolVerdict) (ToolCall, error) {
	if !json.Valid(v.Input) {
		return c, errors.New("the rewritten input is not JSON")
	}
	d := *c.data()
	if d.Original == "" {
		d.Original = cmp.Or(d.Input, "null")
	}
	d.Input = rawJSON(v.Input)
	if d.tool != nil {
		d.Input = rawJSON(d.tool.fill(v.Input))
	}
	return ToolCall{newInput(c.scope(), d)}, nil
}

// sound reports whether the input matches the tool's schema.
func (c ToolCall) sound() bool {
	d := c.data()
	return d.tool == nil || len(d.tool.validate(json.RawMessage(d.Input))) == 0
}

// ToolDecision is the decision of a ToolVerdict.
type ToolDecision string

// The decisions at tool.pre, from mild to severe. The zero value lets the call pass.
const (
	ToolPass ToolDecision = ""
	ToolAsk  ToolDecision = "ask"
	ToolDeny ToolDecision = "deny"
	ToolHalt ToolDecision = "halt"
)

// ToolVerdict is the answer at tool.pre. The zero value is [Pass].
type ToolVerdict struct {
	Decision ToolDecision `json:"decision,omitempty" jsonschema:"pass (the default), ask, deny or halt"`
	Reason   string       `json:"reason,omitempty" jsonschema:"why; the model and the user see it"`
	// Input replaces the tool's input.
	Input json.RawMessage `json:"input,omitempty" jsonschema:"the input that replaces the tool's, if granted"`
	Aside

	askers []asker // the hooks that asked for approval; set only in a merged verdict
}

// Pass lets the tool call run.
var Pass ToolVerdict

// Ask requires a person's approval of the tool call.
func Ask(reason string) ToolVerdict { return ToolVerdict{Decision: ToolAsk, Reason: reason} }

// Deny refuses a tool call. The model gets the reason, and the turn continues.
func Deny(reason string) ToolVerdict { return ToolVerdict{Decision: ToolDeny, Reason: reason} }

// Halt refuses a tool call and ends the turn.
func Halt(reason string) ToolVerdict { return ToolVerdict{Decision: ToolHalt, Reason: reason} }

// RewriteInput replaces a tool's input by a value, encoded as JSON. The subscription needs
// the capability hook.CanRewriteInput.
func RewriteInput(input any) (ToolVerdict, error) {
	data, err := json.Marshal(input)
	if err != nil {
		return Pass, fmt.Errorf("rewrite input: %w", err)
	}
	return ToolVerdict{Input: data}, nil
}

var toolSeverity = map[ToolDecision]hook.Severity{
	ToolPass: hook.SeverityPass, ToolAsk: hook.SeverityAsk, ToolDeny: hook.SeverityDeny, ToolHalt: hook.SeverityHalt,
}

func (v ToolVerdict) decision() ToolDecision {
	return knownDecision(v.Decision, toolDecisions, ToolDeny)
}

// Answer returns the verdict in the form that the hook runtime uses.
func (v ToolVerdict) Answer() *hook.Answer {
	if v.Decision == ToolPass && v.Input == nil {
		return answer(hook.SeverityPass, nil, v.Note, v.Context...)
	}
	severity := toolSeverity[v.decision()]
	var parts []hook.Part
	switch {
	case severity == hook.SeverityAsk:
		parts = append(parts, hook.Part{Kind: "ask", Needs: hook.CanAsk, Content: v.Reason})
	case severity > hook.SeverityAsk:
		parts = append(parts, hook.Part{Kind: severity.String(), Needs: hook.CanBlock, Content: v.Reason})
	}
	if v.Input != nil {
		parts = append(parts, hook.Part{Kind: "input", Needs: hook.CanRewriteInput, Content: string(v.Input)})
	}
	return checked(v.Decision, toolDecisions, answer(severity, parts, v.Note, v.Context...))
}

func mergeTool(m *hook.Merging, merged, v ToolVerdict) ToolVerdict {
	if m.Wins {
		merged.Decision, merged.Reason = v.decision(), v.Reason
	}
	if v.Decision == ToolAsk {
		merged.askers = append(merged.askers, asker{by: m.From, reason: v.Reason})
	}
	if v.Input != nil { // rewriters run in order: each gets the input of the one before, so the last input counts
		merged.Input = slices.Clone(v.Input) // the handler may still use its own slice
	}
	merged.Aside = mergeAside(m, merged.Aside, v.Aside)
	return merged
}

// ResultClass is the class of an error result.
type ResultClass string

// The classes of error results.
const (
	ClassInvalid     ResultClass = "invalid"
	ClassNotFound    ResultClass = "not_found"
	ClassScope       ResultClass = "scope"
	ClassDenied      ResultClass = "denied"
	ClassFailed      ResultClass = "failed"
	ClassTimeout     ResultClass = "timeout"
	ClassAborted     ResultClass = "aborted"
	ClassUnavailable ResultClass = "unavailable"
)

// ToolResult is the input of tool.post: the result of a call that has run.
type ToolResult struct{ input[toolResult] }

type toolResult struct {
	ID      string        `json:"id" jsonschema:"the call's id"`
	Tool    string        `json:"tool" jsonschema:"the tool's name"`
	Input   rawJSON       `json:"input" jsonschema:"the input it ran with"`
	Text    string        `json:"text" jsonschema:"the text for the model"`
	IsError bool          `json:"is_error,omitempty" jsonschema:"whether the tool failed"`
	Class   ResultClass   `json:"class,omitempty" jsonschema:"the class of the failure"`
	Latency time.Duration `json:"latency_ns,omitempty" jsonschema:"how long it ran, in nanoseconds"`
	soFar
}

func (r *toolResult) part() string { return r.ID }

// ID is the call's id.
func (r ToolResult) ID() string { return r.data().ID }

// Tool is the tool's name.
func (r ToolResult) Tool() string { return r.data().Tool }

// Input is the input that the tool ran with.
func (r ToolResult) Input() json.RawMessage { return json.RawMessage(r.data().Input) }

// Text is the result for the model. Earlier hooks may have rewritten it.
func (r ToolResult) Text() string { return r.data().Text }

// IsError reports whether the tool failed.
func (r ToolResult) IsError() bool { return r.data().IsError }

// Class is the class of the failure. It is empty for a success.
func (r ToolResult) Class() ResultClass { return r.data().Class }

// Latency is how long the tool ran.
func (r ToolResult) Latency() time.Duration { return r.data().Latency }

func (r ToolResult) rewritten(v ToolReaction) (ToolResult, error) {
	if v.Result == nil {
		return r, errors.New("the hook's answer has no result")
	}
	d := *r.data()
	d.Text = *v.Result
	return ToolResult{newInput(r.scope(), d)}, nil
}

// ToolReaction is the answer at tool.post.
type ToolReaction struct {
	// Result replaces the text for the model, even if Result points to an empty string. Nil
	// keeps the text.
	Result *string `json:"result,omitempty" jsonschema:"the text that replaces the tool's result, if granted"`
	Aside
}

// RewriteResult replaces a tool's result. The subscription needs the capability
// hook.CanRewriteOutput.
func RewriteResult(text string) ToolReaction { return ToolReaction{Result: &text} }

// withhold replaces the result by a message if a hook with the right to rewrite results
// failed closed. If any other hook failed closed, withhold reports false and the turn
// ends.
func withhold(p hook.Problem) (ToolReaction, bool) {
	if !p.Rewrites {
		return ToolReaction{}, false
	}
	why := p.Reason()
	if !strings.Contains(why, p.Subscription) {
		why = p.Subscription + ": " + why
	}
	return RewriteResult(fmt.Sprintf("[result withheld: %s]", why)), true
}

// Answer returns the reaction in the form that the hook runtime uses.
func (r ToolReaction) Answer() *hook.Answer {
	var parts []hook.Part
	if r.Result != nil {
		parts = []hook.Part{{Kind: "result", Needs: hook.CanRewriteOutput, Content: *r.Result}}
	}
	return answer(hook.SeverityPass, parts, r.Note, r.Context...)
}

func mergeReaction(m *hook.Merging, merged, r ToolReaction) ToolReaction {
	if r.Result != nil {
		merged.Result = r.Result
	}
	merged.Aside = mergeAside(m, merged.Aside, r.Aside)
	return merged
}

// DeniedCall is the input of tool.denied: a call that was refused before it started.
type DeniedCall struct{ input[deniedCall] }

type deniedCall struct {
	ID     string      `json:"id" jsonschema:"the call's id"`
	Tool   string      `json:"tool" jsonschema:"the tool's name"`
	By     string      `json:"by" jsonschema:"who refused it: a subscription, a guard, a zone, a rule, a person"`
	Reason string      `json:"reason" jsonschema:"why"`
	Class  ResultClass `json:"class" jsonschema:"denied; not_found, invalid or scope for a call that reached no gate"`
	soFar
}

func (c *deniedCall) part() string { return c.ID }

// ID is the call's id.
func (c DeniedCall) ID() string { return c.data().ID }

// Tool is the tool's name.
func (c DeniedCall) Tool() string { return c.data().Tool }

// By is who refused the call: a subscription, an interceptor, a guard, a zone, a rule, a
// person or belay.
func (c DeniedCall) By() string { return c.data().By }

// Reason says why the call was refused.
func (c DeniedCall) Reason() string { return c.data().Reason }

// Class is denied for a call that a gate, the floor or a person refused. It is not_found,
// scope or invalid if Belay itself refused the call because of its tool or its input.
func (c DeniedCall) Class() ResultClass { return c.data().Class }
