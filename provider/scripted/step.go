package scripted

import (
	"context"
	"time"

	"github.com/belay-run/belay"
)

// Step is one answer of the model. The zero step is an answer without content.
type Step struct {
	// Thinking, Text and Calls are what the model says, in this order. Calls of
	// one step are parallel.
	Thinking string `yaml:"thinking"`
	Text     string `yaml:"text"`
	Calls    []Call `yaml:"calls"`
	// Stop says why the model stopped. Defaults to tool_use if there are calls,
	// else end_turn.
	Stop belay.StopReason `yaml:"stop"`
	// Usage is the usage of the answer. Defaults to an estimate: one token for four
	// bytes that were sent or received, and 1000 for a picture or a file.
	Usage belay.Usage `yaml:"usage"`
	// Pace defines how the answer arrives. Missing fields are those of the model.
	Pace Pace `yaml:"pace"`
	// Fault makes the attempt fail.
	Fault *Fault `yaml:"fault"`
	// Expect defines what the request must look like. A different request fails,
	// and the step is not used up.
	Expect *Expect `yaml:"expect"`
	// Compute returns the step that is played instead of this one. Of this step
	// only Expect is used. If it returns an error, the attempt fails: with a
	// [*belay.ModelError] unchanged, with any other error as ModelInvalid. Many
	// requests can call it at the same time.
	Compute func(ctx context.Context, req *belay.Request) (Step, error) `yaml:"-"`

	at string // position of the step, if it is from a file
}

// Call is a tool call.
type Call struct {
	// ID defaults to call_N for the Nth call of the script, and to call_S_N for the
	// Nth of a computed step S. Give two calls the same id to test that case.
	ID   string `yaml:"id"`
	Tool string `yaml:"tool"`
	// Input is JSON text if it is a string, []byte or json.RawMessage, otherwise a
	// value to encode as JSON; nil is {}. Text that is not a JSON object arrives as
	// Malformed, as when a model stops in the middle of a call.
	Input any `yaml:"input"`
}

// Whole is the Chunk of a response that arrives at once, without deltas.
const Whole = -1

// Pace defines how a response arrives.
type Pace struct {
	// Delay passes before anything arrives, including a fault.
	Delay time.Duration `yaml:"delay"`
	// Pause passes between chunks.
	Pause time.Duration `yaml:"pause"`
	// Chunk is how many characters arrive together. Defaults to word by word.
	Chunk int `yaml:"chunk"`
}

// or fills in the missing fields of p.
func (p Pace) or(model Pace) Pace {
	if p.Delay == 0 {
		p.Delay = model.Delay
	}
	if p.Pause == 0 {
		p.Pause = model.Pause
	}
	if p.Chunk == 0 {
		p.Chunk = model.Chunk
	}
	return p
}

// Fault defines how an attempt fails.
type Fault struct {
	// Kind, Status, RetryAfter and Message are those of the error. Kind defaults
	// to ModelServer.
	Kind       belay.ModelErrorKind `yaml:"kind"`
	Status     int                  `yaml:"status"`
	RetryAfter time.Duration        `yaml:"retry_after"`
	Message    string               `yaml:"message"`
	// After is how many chunks arrive first.
	After int `yaml:"after"`
	// Cut ends the stream with neither a response nor an error.
	Cut bool `yaml:"cut"`
	// Hang sends nothing more until the context is cancelled.
	Hang bool `yaml:"hang"`
}
