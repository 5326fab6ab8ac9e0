package belay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Tool is something that a model can call. [NewTool] makes one from a Go function,
// [NewRawTool] from a function that takes raw JSON.
//
// Many sessions call a tool at the same time. The calls of one response also run at the
// same time, unless the tool is serial: see [ToolTraits].
type Tool interface {
	// Declaration describes the tool to the model. It must not change.
	Declaration() ToolDeclaration
	// Call runs the tool with an input that matches its schema. If Call returns an error,
	// the model gets the error as a failed result. An error from [Park] parks the call
	// instead.
	Call(ctx context.Context, call *Invocation) (Result, error)
}

// TraitTool is a Tool with traits. Any other tool has the zero value of ToolTraits.
type TraitTool interface {
	Tool
	Traits() ToolTraits
}

// ListingTool is a Tool whose description contains a list of limited length, for example a
// list of skills. It must be a tool of a StepToolExtension.
type ListingTool interface {
	Tool
	// LeftOut says what is missing in the list. It returns "" if the list is complete. The
	// agent reports the text once, as the diagnostic tool_listing.truncated.
	LeftOut() string
}

// ToolTraits say how a tool runs. They are also the options of NewTool.
type ToolTraits struct {
	// Serial makes the calls of the tool run alone and in order. Defaults to false: calls
	// run in parallel with the other calls of their response.
	Serial bool
	// MustFinish lets a call finish when the turn is aborted. Defaults to false: the call
	// is cancelled.
	MustFinish bool
	// Idempotent says that a call may run twice. If a process ends while the call is
	// running, the call runs again. Defaults to false: the model gets an aborted result.
	Idempotent bool
	// Timeout limits the time of a call. A negative value means no limit. Defaults to the
	// agent's [Limits].Tool.
	Timeout time.Duration
	// MaxResult limits the text of a result, in characters. Defaults to the agent's limit.
	MaxResult int
	// NeedsAuthorizer says that the tool is dangerous without a permission check, such as a
	// shell. An agent without Options.Authorizer refuses the tool. MCP tools and the tools
	// of bundles never have this trait: you accept them when you declare the server or add
	// the RouteExtension. Defaults to false.
	NeedsAuthorizer bool
}

// Invocation is a call in the form that a tool gets. The tool may keep it.
type Invocation struct {
	// ID is the call's id, unique within its response.
	ID   string
	Tool string
	// Input is the final input: JSON that matches the tool's schema.
	Input json.RawMessage
	// Session, Turn, Step and Agent say where the call was made.
	Session, Turn string
	Step          int
	Agent         string
	// Wait is the name that the tool passed to [Park]. It is set only when the call is
	// resumed after the tool has parked it.
	Wait string
	// Answers are the answers to the questions that the tool asked with [ParkAsk] during
	// this call, oldest first.
	Answers []ToolAnswer

	turn     *turn
	controls *Controls
	direct   bool // a directive or an extension makes the call: see Controls.RunTool
}

// Key returns an idempotency key, as payment services need it. The key has 64 characters.
// Every call has a different key. A call that runs again after a crash keeps its key.
func (i *Invocation) Key() string {
	if i.direct { // the turn can begin again with another id
		return strings.TrimPrefix(i.ID, directPrefix)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %q", i.Session, i.Turn, i.Step, i.ID))
	return hex.EncodeToString(sum[:])
}

// Decode decodes the input into a struct.
func (i *Invocation) Decode(into any) error { return rawJSON(i.Input).decode(into) }

// Result is the result of a call.
type Result struct {
	// Text is for the model.
	Text string `json:"text"`
	// IsError tells the model that the call failed. Class says how.
	IsError bool        `json:"is_error,omitempty"`
	Class   ResultClass `json:"class,omitempty"`
	// Media are images and files for the model.
	Media []Media `json:"media,omitempty"`
	// Render is for programs that show the result to users. The model does not get it.
	Render json.RawMessage `json:"render,omitempty"`
	// Spilled is the file with the full text, if Text was cut.
	Spilled string `json:"spilled,omitempty"`
	// Final ends the turn after this step, as if the model had given its final answer.
	Final bool `json:"final,omitempty"`
}

// Failed returns a result that reports a failure to the model.
func Failed(class ResultClass, text string) Result {
	return Result{Text: text, IsError: true, Class: class}
}

// parkError is the error that [Park] and [ParkAsk] return.
type parkError struct {
	// Wait says what the call waits for.
	Wait string
	// question is the question of ParkAsk.
	question string
}

func (e *parkError) Error() string { return "the call waits for " + e.Wait }

// Park returns an error that parks a call. Return it from a tool that must wait longer than
// a process should run. The turn then ends parked. When the turn is resumed, the tool is
// called again with the same input, and [Invocation].Wait is the text that was passed to
// Park.
func Park(wait string) error { return &parkError{Wait: wait} }

// AbandonTool is a Tool that keeps something open while a call is parked, such as the
// session of a subagent. Belay tells only an AbandonTool that a parked call will never
// continue.
type AbandonTool interface {
	Tool
	// Abandon is called for a call that has begun and will not continue. The call was
	// parked, or was running when its process ended, and then somebody ended the turn or
	// denied the call. The call's Wait is the name that the tool passed to [Park], if any.
	//
	// Abandon may be called more than once, and for calls that have nothing open. If
	// Abandon returns an error, Belay logs it and emits it as an event. The result of the
	// call does not change.
	Abandon(ctx context.Context, call *Invocation) error
}
