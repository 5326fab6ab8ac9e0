package belay

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"
)

// Model is a language model. Packages below provider implement it; the
// conformance suite in provider/providertest says exactly what one must do.
//
// A Model is used by many sessions at a time. It does not retry: the loop does,
// and model.pre fires for each attempt.
type Model interface {
	// Stream sends a request and yields the response as it arrives. The last
	// chunk carries the whole response, which is the caller's to change; a
	// sequence that ends without one, or with an error, is a failed attempt. One
	// that was cancelled yields the context's error, wrapped or not. Leaving the
	// sequence or cancelling ctx ends the request. The request is the caller's:
	// the model does not change it, and the caller changes nothing that it holds.
	//
	// The loop cancels ctx when nothing is yielded for as long as [Limits].Idle, and
	// tries again. If the service sends something that is no part of the response, such
	// as a ping, Stream yields an empty chunk as a sign of life. A sequence that does not
	// end soon after its context is left behind.
	Stream(ctx context.Context, req *Request) iter.Seq2[Chunk, error]
}

// InfoModel is a Model that tells about itself. Without it a model has no name
// and no known window, and its responses no cost but what they state.
type InfoModel interface {
	Model
	Info() ModelInfo
}

// ModelInfo describes a model.
type ModelInfo struct {
	// Name is provider/name.
	Name string `json:"name"`
	// Window is how many tokens a request and its response may take; 0 if that
	// is not known.
	Window int `json:"window,omitempty"`
	// MaxOutput is how many tokens a response may take; 0 if that is not known.
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

// Of is the cost of tokens.
func (p Price) Of(u Usage) float64 {
	return (float64(u.In)*p.In + float64(u.Out)*p.Out +
		float64(u.CacheRead)*p.CacheRead + float64(u.CacheWrite)*p.CacheWrite) / 1e6
}

// Request is what a model is asked. Each request of a session begins with the
// bytes of the one before, so that a provider's cache holds; ephemeral reminders,
// which sit last, are the exception.
type Request struct {
	// System is the system prompt.
	System string
	// Messages are the conversation, oldest first. Neighbours may be on the same
	// side: a provider that wants them to alternate joins their parts.
	Messages []*Message
	// Tools are what the model may call, in a stable order.
	Tools []ToolDeclaration
	// MaxTokens bounds the response. 0 leaves it to the provider.
	MaxTokens int
}

// Chunk is a piece of a response: a delta, or at last the whole of it. An empty one is a
// sign of life.
type Chunk struct {
	Text     string
	Thinking string
	// Input is a piece of the input of a tool call under way.
	Input *InputDelta
	// Response is set in the last chunk only.
	Response *Response
}

// InputDelta is a piece of a tool call's input.
type InputDelta struct {
	Call, Tool, Text string
}

// Response is what a model answered.
type Response struct {
	// Parts are text, thinking and tool calls, in the order they came. A call
	// whose input is not a JSON object carries what there is in Malformed, and
	// {} as its input. Ids that are missing or there twice are mended by the loop.
	Parts      []Part
	StopReason StopReason
	// Usage counts tokens. In does not include those read from or written to a
	// cache. A cost of 0 is worked out from the model's price.
	Usage Usage
	// Model is the name the provider gives for what answered, if it gives one.
	Model string
}

// StopReason says why a model stopped.
type StopReason string

// The stop reasons.
const (
	StopEnd       StopReason = "end_turn"
	StopToolUse   StopReason = "tool_use"
	StopMaxTokens StopReason = "max_tokens"
	StopRefusal   StopReason = "refusal"
)

// ModelErrorKind says what sort of failure an attempt was.
type ModelErrorKind string

// The kinds of failed attempts. Those that may pass are tried again.
const (
	ModelRateLimited ModelErrorKind = "rate_limited" // 429
	ModelOverloaded  ModelErrorKind = "overloaded"   // 529
	ModelServer      ModelErrorKind = "server"       // 5xx, or an error in the stream
	ModelNetwork     ModelErrorKind = "network"      // no answer, or one that was cut
	ModelTooLong     ModelErrorKind = "too_long"     // the request does not fit the window
	ModelInvalid     ModelErrorKind = "invalid"      // any other 4xx
	ModelAuth        ModelErrorKind = "auth"         // 401, 403
	ModelEmpty       ModelErrorKind = "empty"        // the stream ended without a response
)

// ModelError is a failed attempt.
type ModelError struct {
	Kind   ModelErrorKind
	Model  string
	Status int // of HTTP, if it came to that
	// RetryAfter is how long the provider asks to wait.
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

// Unwrap returns what the provider said.
func (e *ModelError) Unwrap() error { return e.Err }

// passes reports whether trying again may help.
func (e *ModelError) passes() bool {
	switch e.Kind {
	case ModelRateLimited, ModelOverloaded, ModelServer, ModelNetwork, ModelEmpty:
		return true
	default:
		return false
	}
}

// add sums usage.
func (u Usage) add(o Usage) Usage {
	return Usage{u.In + o.In, u.Out + o.Out, u.CacheRead + o.CacheRead, u.CacheWrite + o.CacheWrite, u.Cost + o.Cost}
}

// minus is what u has more than o.
func (u Usage) minus(o Usage) Usage {
	return Usage{max(u.In-o.In, 0), max(u.Out-o.Out, 0), max(u.CacheRead-o.CacheRead, 0), max(u.CacheWrite-o.CacheWrite, 0), max(u.Cost-o.Cost, 0)}
}

// Tokens is all tokens, cached ones too.
func (u Usage) Tokens() int { return u.In + u.Out + u.CacheRead + u.CacheWrite }

// emptyObject is the input of a call that gave none.
var emptyObject = json.RawMessage("{}")

// ToolCheckModel is a Model that can say beforehand which tools it cannot declare to
// its service: by their names, or by what their schemas use. It is asked before an
// agent is made and when tools are added. Without it the service says so itself, in
// the first turn.
type ToolCheckModel interface {
	Model
	// CheckTools returns an error that names the tools and says what to change.
	CheckTools(tools []ToolDeclaration) error
}

// ReachModel is a Model that can say whether its service is there, takes the key and
// has the model. That costs nothing. Whoever chooses a model for later asks first.
type ReachModel interface {
	Model
	// Reach returns an error that says what is missing, and what to do about it. A
	// service that does not tell which models it has is taken at its word later.
	Reach(ctx context.Context) error
}
