package providertest

import (
	"time"

	"github.com/belay-run/belay"
)

// Reply is a scripted answer to one request.
type Reply struct {
	// Parts are the content, in order. Defaults to none.
	Parts []Part
	// StopReason is why the model stopped. Defaults to tool_use if there is a call,
	// otherwise to end_turn.
	StopReason belay.StopReason
	// StopWord is the stop reason in the protocol's words, for reasons that Belay does not
	// have. Defaults to the word for StopReason.
	StopWord string
	// Usage is the reported usage. Defaults to ten input tokens and five output tokens.
	Usage belay.Usage

	// Refusal is an error that the server sends instead of a response. Defaults to none.
	Refusal *Refusal
	// Page is a web page that the server sends with status 200 instead of a response, like
	// the login page of a proxy. Defaults to none.
	Page string
	// Break ends the stream early. Defaults to a complete stream.
	Break *Break
	// Hold pauses the stream. Defaults to no pause.
	Hold *Hold
	// Delay is how long the server waits before each event. Defaults to no wait.
	Delay time.Duration
	// Flush is how many bytes the server sends at a time, even if this splits an event or a
	// character. Defaults to one event at a time.
	Flush int
}

// PartKind is the kind of a scripted part.
type PartKind string

// The kinds of scripted parts.
const (
	PartText     PartKind = "text"
	PartThinking PartKind = "thinking"
	PartRedacted PartKind = "redacted" // thinking that only the service can read
	PartCall     PartKind = "call"
)

// Part is one part of a scripted response. Use [Text], [Thinking], [Redacted] or [Call] to
// make one.
type Part struct {
	Kind PartKind
	// ID and Tool are the id and the tool of a call.
	ID, Tool string
	// Pieces are the pieces in which the text or the input of a call arrives.
	Pieces []string
}

// Text returns a part with text that arrives in pieces.
func Text(pieces ...string) Part { return Part{Kind: PartText, Pieces: pieces} }

// Thinking returns a part with thinking that arrives in pieces. If the real service signs
// thinking, the test server also signs it. The server checks that thinking is sent back
// unchanged.
func Thinking(pieces ...string) Part { return Part{Kind: PartThinking, Pieces: pieces} }

// Redacted returns a part with thinking that only the service can read. The server checks
// that this thinking is sent back unchanged.
func Redacted(secret string) Part { return Part{Kind: PartRedacted, Pieces: []string{secret}} }

// Call returns a part with a tool call. Its input arrives in pieces.
func Call(id, tool string, pieces ...string) Part {
	return Part{Kind: PartCall, ID: id, Tool: tool, Pieces: pieces}
}

// Refusal is an error that the server sends instead of a response.
type Refusal struct {
	// Kind is the kind of the error. The server sends it in the service's form. For
	// ModelNetwork the server drops the connection.
	Kind belay.ModelErrorKind
	// Status is the HTTP status. Defaults to the service's status for the kind.
	Status int
	// RetryAfter is the value of the Retry-After header. Defaults to no header.
	RetryAfter string
	// Message is the text of the error. Defaults to the service's text.
	Message string
}

// Break ends a stream before its end.
type Break struct {
	// After is how many events the server sends first. If the stream has no further
	// events, the server does not break it off. Defaults to 0.
	After int
	// Error is the kind of an error event that the server sends last. Defaults to no error.
	Error belay.ModelErrorKind
	// Clean ends the answer as if it were complete. By default the server drops the
	// connection, unless Error is set.
	Clean bool
}

// Hold pauses a stream until a channel is closed or the client leaves.
type Hold struct {
	// After is how many pieces the server sends first. Defaults to 0: the server pauses
	// before it sends the headers.
	After int
	// Reached is closed by the server when it pauses. May be nil.
	Reached chan<- struct{}
	// Until is closed by the test to end the pause. If it is nil, the pause lasts until
	// the client leaves.
	Until <-chan struct{}
	// Ping is the interval of SSE comments during the pause. A comment is not an event.
	// Defaults to no pings.
	Ping time.Duration
}

// stopReason returns StopReason or its default.
func (r *Reply) stopReason() belay.StopReason {
	if r.StopReason != "" {
		return r.StopReason
	}
	for _, p := range r.Parts {
		if p.Kind == PartCall {
			return belay.StopToolUse
		}
	}
	return belay.StopEnd
}

// usage returns Usage or its default.
func (r *Reply) usage() belay.Usage {
	if r.Usage == (belay.Usage{}) {
		return belay.Usage{In: 10, Out: 5}
	}
	return r.Usage
}
