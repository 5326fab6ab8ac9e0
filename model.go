package belay

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"
)

// Model is a language model. The packages in provider implement it. The conformance suite
// in provider/providertest checks what a model must do.
//
// Many sessions use a Model at the same time. It does not retry: the loop does, and
// model.pre fires for each attempt.
type Model interface {
	// Stream sends a request and yields the response as it arrives. The last chunk holds
	// the whole response, which the caller may change. A sequence that ends without it, or
	// with an error, is a failed attempt. A cancelled request yields the context's error,
	// wrapped or not. Leaving the sequence or cancelling ctx ends the request. The model
	// must not change the request, and the caller does not change anything in it
	// afterwards.
	//
	// The loop cancels ctx if nothing is yielded for [Limits].Idle, and tries again. If the
	// service sends something that is not part of the response, such as a ping, Stream
	// yields an empty chunk as a sign of life. If the sequence does not end soon after its
	// context, the loop abandons it.
	Stream(ctx context.Context, req *Request) iter.Seq2[Chunk, error]
}

// InfoModel is a Model that describes itself. Without it a model has no name and no known
// window, and its responses have no cost unless they state one.
type InfoModel interface {
	Model
	Info() ModelInfo
}

// ModelInfo describes a model.
type ModelInfo struct {
	// Name has the form provider/name.
	Name string `json:"name"`
	// Window is how many tokens a request and its response may have together; 0 if unknown.
	Window int `json:"window,omitempty"`
	// MaxOutput is how many tokens a response may have; 0 if unknown.
	MaxOutput int   `json:"max_output,omitempty"`
	Price     Price `json:"price,omitzero"`
}

// Price is what a million tokens cost, in US dollars.
type Price struct {
	In         float64 `json:"in,omitempty"`
	Out        float64 `json:"out,omitempty"`
	CacheRead  float64 `json:"cache_read,omitempty"`
	CacheWrite float64 `json:"cache_write,omitempty"`
}

// Of returns the cost of the tokens.
func (p Price) Of(u Usage) float64 {
	return (float64(u.In)*p.In + float64(u.Out)*p.Out +
		float64(u.CacheRead)*p.CacheRead + float64(u.CacheWrite)*p.CacheWrite) / 1e6
}

// Request is a request to a model. Each request of a session begins with the same bytes as
// the one before, so that the provider's cache can be used. Ephemeral reminders, which are
// last, are the exception.
type Request struct {
	// System is the system prompt.
	System string
	// Messages are the conversation, oldest first. Two neighbours may have the same role:
	// if a provider needs alternating roles, it joins their parts.
	Messages []*Message
	// Tools are the tools that the model may call, in a stable order.
	Tools []ToolDeclaration
	// MaxTokens limits the response. 0 means the provider's default.
	MaxTokens int
	// Settings are further settings. A model that cannot use one of them must not ignore it:
	// it yields a [ModelError] of kind [ModelInvalid] and sends nothing.
	Settings Settings
}

// Chunk is a piece of a response: a delta or, in the last chunk, the whole response. An
// empty chunk is a sign of life.
type Chunk struct {
	Text     string
	Thinking string
	// Input is a piece of the input of a tool call.
	Input *InputDelta
	// Response is set in the last chunk only.
	Response *Response
}

// InputDelta is a piece of a tool call's input.
type InputDelta struct {
	Call, Tool, Text string
}

// Response is the answer of a model.
type Response struct {
	// Parts are text, thinking and tool calls, in the order in which they came. A call
	// whose input is not a JSON object has the text in Malformed, and {} as its input. The
	// loop repairs missing and duplicate ids.
	Parts      []Part
	StopReason StopReason
	// Usage counts tokens. In does not include tokens read from or written to a cache. If
	// Cost is 0, it is computed from the model's price.
	Usage Usage
	// Model is the provider's name for the model that answered, if it gives one.
	Model string
}

// StopReason is why a model stopped.
type StopReason string

// The stop reasons.
const (
	StopEnd       StopReason = "end_turn"
	StopToolUse   StopReason = "tool_use"
	StopMaxTokens StopReason = "max_tokens"
	StopRefusal   StopReason = "refusal"
)

// ModelErrorKind is the kind of a failed attempt.
type ModelErrorKind string

// The kinds of failed attempts. Temporary failures are retried.
const (
	ModelRateLimited ModelErrorKind = "rate_limited" // 429
	ModelOverloaded  ModelErrorKind = "overloaded"   // 529
	ModelServer      ModelErrorKind = "server"       // 5xx, or an error in the stream
	ModelNetwork     ModelErrorKind = "network"      // no answer, or an incomplete one
	ModelTooLong     ModelErrorKind = "too_long"     // the request does not fit the window
	ModelInvalid     ModelErrorKind = "invalid"      // any other 4xx
	ModelAuth        ModelErrorKind = "auth"         // 401, 403
	ModelEmpty       ModelErrorKind = "empty"        // the stream ended without a response
)

// ModelError is a failed attempt.
type ModelError struct {
	Kind   ModelErrorKind
	Model  string
	Status int // of HTTP, if there was a response
	// RetryAfter is how long the provider asks the client to wait.
	RetryAfter time.Duration
	Err        error
}

func (e *ModelError) Error() string {
	s := "model"
	if e.Model != "" {
		s += " " + e.Model
	}
	s += ": " + string(e.Kind)
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the provider's error.
func (e *ModelError) Unwrap() error { return e.Err }

// passes reports whether the failure is temporary, so that a retry may help.
func (e *ModelError) passes() bool {
	switch e.Kind {
	case ModelRateLimited, ModelOverloaded, ModelServer, ModelNetwork, ModelEmpty:
		return true
	default:
		return false
	}
}

// add adds usage.
func (u Usage) add(o Usage) Usage {
	return Usage{u.In + o.In, u.Out + o.Out, u.CacheRead + o.CacheRead, u.CacheWrite + o.CacheWrite, u.Cost + o.Cost}
}

// minus is what u has more than o.
func (u Usage) minus(o Usage) Usage {
	return Usage{max(u.In-o.In, 0), max(u.Out-o.Out, 0), max(u.CacheRead-o.CacheRead, 0), max(u.CacheWrite-o.CacheWrite, 0), max(u.Cost-o.Cost, 0)}
}

// Tokens is all tokens, cached ones too.
func (u Usage) Tokens() int { return u.In + u.Out + u.CacheRead + u.CacheWrite }

// emptyObject is the input of a call without one.
var emptyObject = json.RawMessage("{}")

// ToolCheckModel is a Model that can check in advance whether its service accepts tools:
// their names and their schemas. It is called when an agent is made and when tools are
// added. Without it the first turn fails with the service's own error.
type ToolCheckModel interface {
	Model
	// CheckTools returns an error that names the refused tools and says what to change.
	CheckTools(tools []ToolDeclaration) error
}

// ReachModel is a Model that can check whether its service is available, accepts the key
// and has the model. The check costs nothing. Use it before you choose a model for later.
type ReachModel interface {
	Model
	// Reach returns an error that says what is missing and what to do. If the service does
	// not list its models, Reach does not check the name of the model.
	Reach(ctx context.Context) error
}
