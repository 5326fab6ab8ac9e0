// Package tracecontext carries W3C trace context to what Belay calls: hooks, webhooks and MCP
// servers. It knows nothing of OpenTelemetry, so that programs without package telemetry do
// not link it.
package tracecontext

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
)

// Header is the HTTP header with the trace context, and its field in requests of MCP.
// Variable is its environment variable.
const (
	Header   = "traceparent"
	Variable = "TRACEPARENT"
)

// Key is the key of a context under which a Parent is found.
type Key struct{}

// Parent is a span that has a form for others.
type Parent interface {
	// Traceparent returns the value of the header traceparent.
	Traceparent() string
}

// Of returns the value of the header traceparent for what runs with ctx. It is empty without
// a trace.
func Of(ctx context.Context) string {
	if p, ok := ctx.Value(Key{}).(Parent); ok {
		return p.Traceparent()
	}
	return ""
}

// ID is the id of something in a trace. The first 16 bytes are the id of a trace, and the
// next 8 the id of a span.
type ID [sha256.Size]byte

// IDOf returns the id of the thing that the parts name. The parts of a turn are its session
// and its id.
func IDOf(parts ...string) ID {
	var room [160]byte
	text := append(room[:0], "belay"...)
	for _, p := range parts {
		text = append(append(text, 0), p...)
	}
	id := ID(sha256.Sum256(text))
	id[0] |= 1 // an id of zeros is invalid
	id[16] |= 1
	return id
}

// Trace returns the id of the trace as text. session and turn are those of the main agent:
// the turns of subagents belong to the trace of the turn that called them.
func Trace(session, turn string) string {
	id := IDOf(session, turn)
	return hex.EncodeToString(id[:16])
}
