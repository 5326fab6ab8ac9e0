package scripted

import (
	"context"
	"time"

	"github.com/belay-run/belay"
)

// Step is one answer of the model. The zero step is an answer without content.
type Step struct {
	// Thinking, Text and Calls are the content of the answer, in this order. The calls are
	// parallel.
	Thinking string `yaml:"thinking"`
	Text     string `yaml:"text"`
	Calls    []Call `yaml:"calls"`
	// Stop is why the model stopped. Defaults to tool_use if there are calls, otherwise to
	// end_turn.
	Stop belay.StopReason `yaml:"stop"`
	// Usage is the usage of the answer. By default it is estimated from the request and the
	// answer: four bytes are a token, and an image or a file is 1000 tokens.
	Usage belay.Usage `yaml:"usage"`
	// Pace defines how the answer arrives. Missing fields come from Options.Pace.
	Pace Pace `yaml:"pace"`
	// Fault makes the attempt fail.
	Fault *Fault `yaml:"fault"`
	// Expect defines what the request must contain. Any other request fails and does not use
	// the step.
	Expect *Expect `yaml:"expect"`
	// Compute returns the step to play instead of this one. Only Expect of this step is
	// used. If Compute returns an error, the attempt fails. A [*belay.ModelError] is
	// returned unchanged, and any other error as ModelInvalid. Several requests can call
	// Compute at the same time.
	Compute func(ctx context.Context, req *belay.Request) (Step, error) `yaml:"-"`

	at string // file and line of the step; empty if it is not from a file
}

// Call is a tool call.
type Call struct {
	// ID defaults to call_N for call N of the script, and to call_S_N for call N of the
	// computed step S. To test duplicate ids, set the same ID twice.
	ID   string `yaml:"id"`
	Tool string `yaml:"tool"`
	// Input is JSON text if it is a string, []byte or json.RawMessage. Any other value is
	// encoded as JSON; nil becomes {}. Text that is not a JSON object becomes
	// CallPart.Malformed, as when a real model stops in the middle of a call.
	Input any `yaml:"input"`
}

// Whole is a value for Pace.Chunk: the response arrives at once, without deltas.
const Whole = -1

// Pace defines when the chunks of a response arrive and how long they are.
type Pace struct {
	// Delay is the time before the first chunk or the fault.
	Delay time.Duration `yaml:"delay"`
	// Pause is the time between chunks.
	Pause time.Duration `yaml:"pause"`
	// Chunk is the length of a chunk in characters. Defaults to one word per chunk.
	Chunk int `yaml:"chunk"`
}

// or replaces the zero fields of p with those of the model.
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
	// Kind, Status, RetryAfter and Message are fields of the error. Kind defaults to
	// ModelServer.
	Kind       belay.ModelErrorKind `yaml:"kind"`
	Status     int                  `yaml:"status"`
	RetryAfter time.Duration        `yaml:"retry_after"`
	Message    string               `yaml:"message"`
	// After is how many chunks arrive before the fault.
	After int `yaml:"after"`
	// Cut ends the stream without a response and without an error.
	Cut bool `yaml:"cut"`
	// Hang sends nothing more until the context is cancelled.
	Hang bool `yaml:"hang"`
}
