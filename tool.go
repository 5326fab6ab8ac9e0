package belay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Tool is something that a model can call. [NewTool] makes one from a Go function,
// [NewRawTool] from a function that takes raw JSON.
//
// A tool is called by many sessions at the same time, and for several calls of one
// response, unless its traits say that it is serial.
type Tool interface {
	// Declaration describes the tool to the model. It must not change.
	Declaration() ToolDeclaration
	// Call runs the tool with an input that matches its schema. The model gets an error as
	// a result too. An error made by [Park] parks the call.
	Call(ctx context.Context, call *Invocation) (Result, error)
}

// TraitTool is a Tool with traits. Without it a tool has the zero traits.
type TraitTool interface {
	Tool
	Traits() ToolTraits
}

// ListingTool is a Tool whose description contains a list with a limited length, such as
// skills. It applies to tools of a StepToolExtension.
type ListingTool interface {
	Tool
	// LeftOut says what the list leaves out. It is empty if the list is complete. The agent
	// reports it once, as the diagnostic tool_listing.truncated.
	LeftOut() string
}

// ToolTraits say how a tool runs. They are also the options of NewTool.
type ToolTraits struct {
	// Serial makes the tool a barrier: it runs alone, in call order. Defaults to running in
	// parallel with the other calls of its response.
	Serial bool
	// MustFinish lets the tool finish when the turn is aborted. Defaults to cancelling it.
	MustFinish bool
	// Idempotent says that a call may run twice. A call that was running when its process
	// ended is then run again. Defaults to an aborted result for the model.
	Idempotent bool
	// Timeout limits the time of a call. A negative value means no limit. Defaults to 5
	// minutes.
	Timeout time.Duration
	// MaxResult limits the text of a result, in characters. Defaults to the agent's limit.
	MaxResult int
	// NeedsAuthorizer says that the tool is dangerous without a permission check, such as a
	// shell. An agent without Options.Authorizer refuses the tool. Defaults to false.
	NeedsAuthorizer bool
}

// Invocation is a call in the form that its tool gets. The tool may keep it.
type Invocation struct {
	// ID is the call's id, unique within its response.
	ID   string
	Tool string
	// Input is the final input: JSON that matches the tool's schema.
	Input json.RawMessage
	// Session, Turn, Step and Agent are the place of the call.
	Session, Turn string
	Step          int
	Agent         string
	// Wait is the name that the tool gave to [Park], when the call is resumed.
	Wait string

	turn     *turn
	controls *Controls
}

// Key returns an idempotency key, such as payment services ask for: 64 characters that
// differ for every two calls, and stay the same when the call runs again after a crash.
func (i *Invocation) Key() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %q", i.Session, i.Turn, i.Step, i.ID))
	return hex.EncodeToString(sum[:])
}

// Decode decodes the input into a struct.
func (i *Invocation) Decode(into any) error { return rawJSON(i.Input).decode(into) }

// Result is the result of a call.
type Result struct {
	// Text is for the model.
	Text string `json:"text"`
	// IsError tells the model that the call failed. Class is the class of the failure.
	IsError bool        `json:"is_error,omitempty"`
	Class   ResultClass `json:"class,omitempty"`
	// Media are images and files for the model.
	Media []Media `json:"media,omitempty"`
	// Render is for programs that show the result to users. The model never sees it.
	Render json.RawMessage `json:"render,omitempty"`
	// Spilled is the file with the full text, if the text was cut.
	Spilled string `json:"spilled,omitempty"`
	// Final ends the turn after the results of this step are stored, as if the model had
	// ended it.
	Final bool `json:"final,omitempty"`
}

// Failed returns a result that reports a failure to the model.
func Failed(class ResultClass, text string) Result {
	return Result{Text: text, IsError: true, Class: class}
}

// parkError parks a call: see [Park].
type parkError struct {
	// Wait is the name of what the call waits for.
	Wait string
}

func (e *parkError) Error() string { return "the call waits for " + e.Wait }

// Park returns an error that parks a call. Return it from a tool that has to wait longer
// than a process should. The turn ends parked. When it is resumed, the tool is called again
// with the same input, and Wait has the name.
func Park(wait string) error { return &parkError{wait} }

// AbandonTool is a Tool that keeps something open while a call is parked, such as the
// session of a subagent. Without it the tool does not learn that the call will not
// continue.
type AbandonTool interface {
	Tool
	// Abandon is called for a call that began and will not continue. The call was parked,
	// or was running when its process ended, and then the turn was ended or the call was
	// denied. Its Wait is the name that the tool gave to [Park], if any. Abandon may be
	// called more than once, and for calls with nothing open. An error is logged and
	// emitted as an event; the call has its result anyway.
	Abandon(ctx context.Context, call *Invocation) error
}
