package providertest

import (
	"time"

	"github.com/belay-run/belay"
)

// Reply is a scripted answer to one request.
type Reply struct {
	// Parts are the content, in order. Defaults to none.
	Parts []Part
	// StopReason says why the model stopped. Defaults to tool_use if there is a
	// call and to end_turn otherwise.
	StopReason belay.StopReason
	// StopWord is the stop reason in the protocol's words, for reasons that belay does not
	// have. Defaults to the word for StopReason.
	StopWord string
	// Usage is the reported usage. Defaults to ten input tokens and five output tokens.
	Usage belay.Usage

	// Refusal answers with an error in place of a response. Defaults to none.
	Refusal *Refusal
	// Page answers with status 200 and a web page in place of a response, like the login
	// page of a proxy. Defaults to none.
	Page string
	// Break ends the stream early. Defaults to a complete stream.
	Break *Break
	// Hold pauses the stream. Defaults to no pause.
	Hold *Hold
	// Delay is how long to wait before each event. Defaults to none.
	Delay time.Duration
	// Flush is how many bytes are sent at a time, even if that splits an event or a
	// character. Defaults to one event at a time.
	Flush int
}

// PartKind says what a scripted part is.
type PartKind string

// The kinds of scripted parts.
const (
	PartText     PartKind = "text"
	PartThinking PartKind = "thinking"
	PartRedacted PartKind = "redacted" // thinking that only the service can read
	PartCall     PartKind = "call"
)

// Part is one part of a scripted response. [Text], [Thinking], [Redacted] and
// [Call] make one.
type Part struct {
	Kind PartKind
	// ID and Tool are set for a call.
	ID, Tool string
	// Pieces are the text, or the input of a call, as they arrive.
	Pieces []string
}

// Text scripts text that arrives in pieces.
func Text(pieces ...string) Part { return Part{Kind: PartText, Pieces: pieces} }

// Thinking scripts thinking that arrives in pieces. The server signs it if the service does,
// and checks that it is sent back unchanged.
func Thinking(pieces ...string) Part { return Part{Kind: PartThinking, Pieces: pieces} }

// Redacted scripts thinking that only the service can read. The server checks that it is sent
// back unchanged.
func Redacted(secret string) Part { return Part{Kind: PartRedacted, Pieces: []string{secret}} }

// Call scripts a tool call whose input arrives in pieces.
func Call(id, tool string, pieces ...string) Part {
	return Part{Kind: PartCall, ID: id, Tool: tool, Pieces: pieces}
}

// Refusal is an error in place of a response.
type Refusal struct {
	// Kind is the kind of the error. The server sends it in the service's form.
	Kind belay.ModelErrorKind
	// Status is the HTTP status. Defaults to what the service uses for the kind.
	Status int
	// RetryAfter is the value of the header. Defaults to no header.
	RetryAfter string
	// Message is the text of the error. Defaults to the service's text.
	Message string
}

// Break ends a stream before its end.
type Break struct {
	// After is how many events are sent first. A stream with no more events than that is
	// not broken. Defaults to none.
	After int
	// Error is the kind of an error that is reported in the stream. Defaults to no error.
	Error belay.ModelErrorKind
	// Clean ends the answer as if it were complete. Defaults to dropping the
	// connection.
	Clean bool
}

// Hold pauses a stream until a channel is closed or the client has left.
type Hold struct {
	// After is how many pieces of parts are sent first. Defaults to none, not even the
	// headers of the answer.
	After int
	// Reached is closed by the server when it pauses. May be nil.
	Reached chan<- struct{}
	// Until is closed by the test to continue. Defaults to waiting until the client leaves.
	Until <-chan struct{}
	// Ping is the interval at which a stream sends a comment during the pause, which is not
	// an event. Defaults to no pings.
	Ping time.Duration
}

// stopReason returns the stop reason, or the default.
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

// usage returns the usage, or the default.
func (r *Reply) usage() belay.Usage {
	if r.Usage == (belay.Usage{}) {
		return belay.Usage{In: 10, Out: 5}
	}
	return r.Usage
}
