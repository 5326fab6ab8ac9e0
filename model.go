package belay

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"
)

// Model is a language model. The packages in the directory provider implement it. The
// conformance suite in provider/providertest checks an implementation.
//
// Many sessions use a Model at the same time. A Model must not retry: the loop retries, and
// the phase model.pre fires for each attempt.
type Model interface {
	// Stream sends a request and yields the response as it arrives. The last chunk holds
	// the whole response, which the caller may change. An attempt fails if the sequence
	// ends with an error or without a whole response. A cancelled request yields the
	// context's error, wrapped or not. Stream must end the request when the caller leaves
	// the loop over the sequence or cancels ctx. Neither the model nor the caller may
	// change the request.
	//
	// The loop cancels ctx if nothing is yielded for [Limits].Idle, and tries again. Stream
	// must yield an empty chunk when the service sends something that is not part of the
	// response, such as a ping. If the sequence does not end soon after ctx, the loop stops
	// waiting for it.
	Stream(ctx context.Context, req *Request) iter.Seq2[Chunk, error]
}

// InfoModel is a Model that describes itself. For any other model, Belay knows no name and
// no window, and a response has a cost only if it states one.
type InfoModel interface {
	Model
	Info() ModelInfo
}

// ModelInfo describes a model.
type ModelInfo struct {
	// Name has the form provider/name.
	Name string `json:"name"`
	// Window is the maximum number of tokens of a request and its response together; 0 if
	// unknown.
	Window int `json:"window,omitempty"`
	// MaxOutput is the maximum number of tokens of a response; 0 if unknown. For a model in
	// the provider's built-in table it is the usual limit, and the service may allow more.
	MaxOutput int   `json:"max_output,omitempty"`
	Price     Price `json:"price,omitzero"`
}

// Price is the price of a million tokens, in US dollars.
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

// Request is a request to a model. As far as possible, each request of a session begins
// with the same bytes as the previous one, so that the provider can use its cache.
// Ephemeral reminders come last, because the next request does not contain them.
type Request struct {
	// System is the system prompt.
	System string
	// Messages are the conversation, oldest message first. Two messages in a row may have
	// the same role. If a provider needs alternating roles, it must join their parts.
	Messages []*Message
	// Tools are the tools that the model may call, in a stable order.
	Tools []ToolDeclaration
	// MaxTokens limits the response. 0 means the provider's default.
	MaxTokens int
	// Settings are further settings. A model must not ignore a setting that it does not
	// support: it yields a [ModelError] of kind [ModelInvalid] and sends nothing.
	Settings Settings
}

// Chunk is a piece of a response. The last chunk has the whole response. An empty chunk
// means only that the service is still working.
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

// Response is the whole answer of a model.
type Response struct {
	// Parts are text, thinking and tool calls, in the order in which they arrived. If the
	// input of a call is not a JSON object, Malformed has its text and Input is {}. The
	// loop repairs missing and duplicate ids.
	Parts      []Part
	StopReason StopReason
	// Usage counts tokens. In does not include tokens that were read from or written to a
	// cache. If Cost is 0, the loop computes it from the model's price.
	Usage Usage
	// Model is the name of the model that answered, as the provider reports it. It may be
	// empty.
	Model string
	// Ignored lists the settings that the provider could not use in this request, each with
	// the reason. The turn reports them as the diagnostic model.setting_ignored. A setting
	// that the model never supports is an error instead: see [SettingsModel].
	Ignored []string
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

// ModelErrorKind is the kind of a failed attempt.
type ModelErrorKind string

// The kinds of failed attempts. The loop retries temporary failures.
const (
	ModelRateLimited ModelErrorKind = "rate_limited" // 429
	ModelOverloaded  ModelErrorKind = "overloaded"   // 529
	ModelServer      ModelErrorKind = "server"       // 5xx, or an error in the stream
	ModelNetwork     ModelErrorKind = "network"      // no answer, or an incomplete one
	ModelTooLong     ModelErrorKind = "too_long"     // the request is longer than the window
	ModelInvalid     ModelErrorKind = "invalid"      // any other 4xx
	ModelAuth        ModelErrorKind = "auth"         // 401, 403
	ModelEmpty       ModelErrorKind = "empty"        // the stream ended without a response
)

// ModelError is a failed attempt.
type ModelError struct {
	Kind   ModelErrorKind
	Model  string
	Status int // HTTP status; 0 if there was no response
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

// passes reports whether the failure may be temporary, so that a retry may help.
func (e *ModelError) passes() bool {
	switch e.Kind {
	case ModelRateLimited, ModelOverloaded, ModelServer, ModelNetwork, ModelEmpty:
		return true
	default:
		return false
	}
}

func (u Usage) add(o Usage) Usage {
	return Usage{u.In + o.In, u.Out + o.Out, u.CacheRead + o.CacheRead, u.CacheWrite + o.CacheWrite, u.Cost + o.Cost}
}

// minus returns u - o, where no field is less than 0.
func (u Usage) minus(o Usage) Usage {
	return Usage{max(u.In-o.In, 0), max(u.Out-o.Out, 0), max(u.CacheRead-o.CacheRead, 0), max(u.CacheWrite-o.CacheWrite, 0), max(u.Cost-o.Cost, 0)}
}

// Tokens returns the number of all tokens, including cached ones.
func (u Usage) Tokens() int { return u.In + u.Out + u.CacheRead + u.CacheWrite }

// emptyObject replaces the missing input of a call.
var emptyObject = json.RawMessage("{}")

// ToolCheckModel is a Model that can check in advance whether its service accepts the
// names and schemas of tools. Belay calls CheckTools when an agent is made and when tools
// are added. With any other model, invalid tools make the first turn fail with the
// service's own error.
type ToolCheckModel interface {
	Model
	// CheckTools returns an error that names the invalid tools and says what to change.
	CheckTools(tools []ToolDeclaration) error
}

// ReachModel is a Model that can check whether its service is available, accepts the key
// and has the model. The check costs nothing.
type ReachModel interface {
	Model
	// Reach returns an error that says what is missing and what to do. If the service does
	// not list its models, Reach does not check the name of the model.
	Reach(ctx context.Context) error
}
