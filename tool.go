package belay

import (
	"context"
	"encoding/json"
	"time"
)

// Tool is something a model can call. [NewTool] makes one of a Go function,
// [NewRawTool] one of a function that takes JSON as it comes.
//
// A tool is called by many sessions at a time, and by several calls of one
// response, unless its traits say that it is serial.
type Tool interface {
	// Declaration is what the model is told. It must not change: a tool that
	// changes is another tool.
	Declaration() ToolDeclaration
	// Call runs the tool on an input that fits its schema. An error is a result
	// too: the model is told of it. An error made by [Park] puts the call on hold.
	Call(ctx context.Context, call *Invocation) (Result, error)
}

// TraitTool is a Tool that says how it wants to be run. Without it a tool has
// the zero traits.
type TraitTool interface {
	Tool
	Traits() ToolTraits
}

// ListingTool is a Tool whose description lists something within a budget, such as skills.
// It counts for tools that a StepToolExtension brings.
type ListingTool interface {
	Tool
	// LeftOut tells the user what the list leaves out. It is empty if the list is complete.
	// The agent tells it once, as the diagnostic tool_listing.truncated.
	LeftOut() string
}

// ToolTraits say how a tool is run. They are also the options of NewTool.
type ToolTraits struct {
	// Serial makes the tool a barrier: it runs alone, in call order. Defaults to
	// running beside the other calls of its response.
	Serial bool
	// MustFinish keeps the tool running when the turn is aborted. Defaults to
	// cancelling it.
	MustFinish bool
	// Idempotent says that running a call twice does no harm, so that a call
	// which was under way when its process ended is run again. Defaults to
	// telling the model that it was interrupted.
	Idempotent bool
	// Timeout bounds a call; negative means no bound. Defaults to 5 minutes.
	Timeout time.Duration
	// MaxResult bounds the text of a result, in characters. Defaults to the
	// agent's limit.
	MaxResult int
}

// Invocation is a call as its tool sees it. It is the tool's to keep.
type Invocation struct {
	// ID is the call's id, unique within its response.
	ID   string
	Tool string
	// Input is the final input: JSON that fits the tool's schema.
	Input json.RawMessage
	// Session, Turn, Step and Agent are where the call was made.
	Session, Turn string
	Step          int
	Agent         string
	// Wait is the name under which the call was parked, when it is resumed.
	Wait string

	turn     *turn
	controls *Controls
}

// Decode reads the input into a struct.
func (i *Invocation) Decode(into any) error { return rawJSON(i.Input).decode(into) }

// Result is what came of a call.
type Result struct {
	// Text is for the model.
	Text string `json:"text"`
	// IsError tells the model that it failed, and Class what sort of failure it
	// was.
	IsError bool        `json:"is_error,omitempty"`
	Class   ResultClass `json:"class,omitempty"`
	// Media are images and files for the model.
	Media []Media `json:"media,omitempty"`
	// Render is for whoever shows the result to people. The model never sees it.
	Render json.RawMessage `json:"render,omitempty"`
	// Spilled is the file that holds the whole text, if it was cut.
	Spilled string `json:"spilled,omitempty"`
	// Final ends the turn once the results of this step are stored, as if the
	// model had ended it.
	Final bool `json:"final,omitempty"`
}

// Failed makes a result that tells the model of a failure.
func Failed(class ResultClass, text string) Result {
	return Result{Text: text, IsError: true, Class: class}
}

// ParkError puts a call on hold: return it from a tool that has to wait longer
// than a process should. The turn ends parked. When it is resumed, the tool is
// called again with the same input and Wait set.
type parkError struct {
	// Wait names what the call waits for.
	Wait string
}

func (e *parkError) Error() string { return "the call waits for " + e.Wait }

// Park makes the error that puts a call on hold.
func Park(wait string) error { return &parkError{wait} }

// AbandonTool is a Tool that keeps something open for a call while it waits, such as the
// session of a subagent. Without it nobody tells the tool that a call which it parked
// will not go on.
type AbandonTool interface {
	Tool
	// Abandon is told of a call that began and will not go on: it was parked, or under
	// way when its process ended, and the turn was ended, or the call was refused
	// meanwhile. Its Wait is the name under which it was parked, if it was. It may be told
	// more than once, and of calls for which nothing is open. An error is logged, and told
	// to those who watch; the call has its result anyway.
	Abandon(ctx context.Context, call *Invocation) error
}
