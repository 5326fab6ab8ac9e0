package telemetry

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	"go.opentelemetry.io/otel/trace"

	"github.com/belay-run/belay/internal/tracecontext"
)

// IDs is an id generator for a tracer provider. It gives the spans of Telemetry the ids that
// make the spans of several processes one tree, and gives all others random ids. Pass it to
// WithIDGenerator of the SDK.
type IDs struct{}

// NewIDs returns the ids of a new trace and its first span.
func (IDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if w := wantedIn(ctx); w != nil {
		id := w.take()
		return trace.TraceID(id[:16]), trace.SpanID(id[16:24])
	}
	var id trace.TraceID
	binary.LittleEndian.PutUint64(id[:8], rand.Uint64()|1)
	binary.LittleEndian.PutUint64(id[8:], rand.Uint64())
	return id, randomSpan()
}

// NewSpanID returns the id of a span in a trace.
func (IDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if w := wantedIn(ctx); w != nil {
		id := w.take()
		return trace.SpanID(id[16:24])
	}
	return randomSpan()
}

func randomSpan() (id trace.SpanID) {
	binary.LittleEndian.PutUint64(id[:], rand.Uint64()|1)
	return id
}

// wantedIn returns the place whose span is being made, if it wants an id.
func wantedIn(ctx context.Context) *place {
	if p := placeOf(ctx); p != nil && p.wants {
		return p
	}
	return nil
}

// take returns the wanted id. Spans of others below this place get ids of their own.
func (p *place) take() tracecontext.ID {
	p.wants = false
	return p.id
}

// TraceID returns the id of the trace of a turn. session and turn are those of the main
// agent: the turns of subagents belong to the trace of the turn that called them.
func TraceID(session, turn string) trace.TraceID {
	id := tracecontext.IDOf(session, turn)
	return trace.TraceID(id[:16])
}
