package providertest

import (
	"time"

	"github.com/belay-run/belay"
)

// Reply is what a server answers to one request.
type Reply struct {
	// Parts are the content, in order. Defaults to none.
	Parts []Part
	// StopReason says why the model stopped. Defaults to tool_use if there is a
	// call and to end_turn otherwise.
	StopReason belay.StopReason
	// StopWord is the protocol's own word for it, for those that belay has no
	// word for. Defaults to the word for StopReason.
	StopWord string
	// Usage is what is counted. Defaults to ten tokens in and five out.
	Usage belay.Usage

	// Refusal answers with an error in place of a response. Defaults to none.
	Refusal *Refusal
	// Page answers with a web page in place of a response, and the status of success, as
	// a proxy does that wants a login. Defaults to none.
	Page string
	// Break ends the stream early. Defaults to letting it end.
	Break *Break
	// Hold stops the stream for a while. Defaults to going on.
	Hold *Hold
	// Delay is how long to wait before each event. Defaults to none.
	Delay time.Duration
	// Flush is how many bytes are sent at a time, whatever they are in the middle
	// of. Defaults to one event at a time.
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
	// ID and Tool are those of a call.
	ID, Tool string
	// Pieces are the text, or the input of a call, as they arrive.
	Pieces []string
}

// Text scripts text that arrives in pieces.
func Text(pieces ...string) Part { return Part{Kind: PartText, Pieces: pieces} }

// Thinking scripts thinking that arrives in pieces. The server signs it, if that
// is what the service does, and wants it back unchanged.
func Thinking(pieces ...string) Part { return Part{Kind: PartThinking, Pieces: pieces} }

// Redacted scripts thinking that only the service can read, and wants back
// unchanged.
func Redacted(secret string) Part { return Part{Kind: PartRedacted, Pieces: []string{secret}} }

// Call scripts a tool call whose input arrives in pieces.
func Call(id, tool string, pieces ...string) Part {
	return Part{Kind: PartCall, ID: id, Tool: tool, Pieces: pieces}
}

// Refusal is an error in place of a response.
type Refusal struct {
	// Kind is what sort of error it is; the server words it as the service does.
	Kind belay.ModelErrorKind
	// Status is the HTTP status. Defaults to what the service uses for the kind.
	Status int
	// RetryAfter is the value of the header. Defaults to no header.
	RetryAfter string
	// Message is what it says. Defaults to what the service says.
	Message string
}

// Break ends a stream before its end.
type Break struct {
	// After is how many events are sent before. A stream that has no more is not
	// broken. Defaults to none.
	After int
	// Error is reported in the stream, as an error of that kind. Defaults to no
	// word of it.
	Error belay.ModelErrorKind
	// Clean ends the answer as if it were complete. Defaults to dropping the
	// connection.
	Clean bool
}

// Hold stops a stream until a channel is closed or the client has left.
type Hold struct {
	// After is how many pieces of parts are sent before. Defaults to not even
	// beginning to answer.
	After int
	// Reached is closed by the server when it stops. Defaults to telling nobody.
	Reached chan<- struct{}
	// Until is closed to go on. Defaults to waiting for the client to leave.
	Until <-chan struct{}
	// Ping is how often the server sends a sign of life meanwhile: a comment, which is no
	// event. It applies to streams. Defaults to silence.
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
