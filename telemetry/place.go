package telemetry

import (
	"context"
	"encoding/hex"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/belay-run/belay/internal/tracecontext"
)

// place is where something happens in a trace. It is a context: what happens inside finds it
// there.
type place struct {
	context.Context //nolint:containedctx // it is a context

	span  trace.Span
	ctx   context.Context //nolint:containedctx // this place with its span, for what happens inside
	id    tracecontext.ID
	wants bool      // IDs has not given the span its id yet
	here  time.Time // when a turn began or continued in this process

	session, turn string // whose place it is
	step          int    // the step that it is in, or 0
}

var _ tracecontext.Parent = (*place)(nil)

type placeKey struct{}

// placeOf returns the place of ctx, or nil.
func placeOf(ctx context.Context) *place {
	p, _ := ctx.Value(placeKey{}).(*place)
	return p
}

// Value returns the place itself, for this package and for package tracecontext.
func (p *place) Value(key any) any {
	switch key.(type) {
	case placeKey, tracecontext.Key:
		return p
	default:
		return p.Context.Value(key)
	}
}

// Traceparent returns the span in the form of W3C.
func (p *place) Traceparent() string {
	sc := p.span.SpanContext()
	if !sc.IsValid() {
		return ""
	}
	var b [55]byte
	traceID, spanID, flags := sc.TraceID(), sc.SpanID(), [1]byte{byte(sc.TraceFlags())}
	copy(b[:], "00-")
	hex.Encode(b[3:], traceID[:])
	b[35] = '-'
	hex.Encode(b[36:], spanID[:])
	b[52] = '-'
	hex.Encode(b[53:], flags[:])
	return string(b[:])
}

func (p *place) recording() bool { return p.span.IsRecording() }
