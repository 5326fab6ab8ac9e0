package otlp

import (
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// encodeSpans encodes an ExportTraceServiceRequest. All spans have the resource of one
// provider.
func encodeSpans(spans []sdktrace.ReadOnlySpan) []byte {
	var m message
	m.message(1, func(m *message) {
		m.resource(spans[0].Resource())
		scopes, inside := byScope(spans, sdktrace.ReadOnlySpan.InstrumentationScope)
		for _, scope := range scopes {
			m.message(2, func(m *message) {
				m.scope(scope)
				for _, span := range inside[scope] {
					m.message(2, func(m *message) { m.span(span) })
				}
				m.text(3, scope.SchemaURL)
			})
		}
	})
	return m
}

// byScope sorts values by their scopes. It returns the scopes in the order of their first
// values.
func byScope[T any](all []T, of func(T) instrumentation.Scope) ([]instrumentation.Scope, map[instrumentation.Scope][]T) {
	var scopes []instrumentation.Scope
	inside := make(map[instrumentation.Scope][]T)
	for _, one := range all {
		scope := of(one)
		if inside[scope] == nil {
			scopes = append(scopes, scope)
		}
		inside[scope] = append(inside[scope], one)
	}
	return scopes, inside
}

func (m *message) span(s sdktrace.ReadOnlySpan) {
	sc, parent := s.SpanContext(), s.Parent()
	traceID, spanID, parentID := sc.TraceID(), sc.SpanID(), parent.SpanID()
	m.bytes(1, traceID[:])
	m.bytes(2, spanID[:])
	m.text(3, sc.TraceState().String())
	if parent.IsValid() {
		m.bytes(4, parentID[:])
	}
	m.text(5, s.Name())
	m.varint(6, uint64(s.SpanKind()))
	m.time(7, s.StartTime())
	m.time(8, s.EndTime())
	m.attributes(9, s.Attributes())
	m.varint(10, uint64(s.DroppedAttributes()))
	for _, e := range s.Events() {
		m.message(11, func(m *message) {
			m.time(1, e.Time)
			m.text(2, e.Name)
			m.attributes(3, e.Attributes)
			m.varint(4, uint64(e.DroppedAttributeCount))
		})
	}
	m.varint(12, uint64(s.DroppedEvents()))
	for _, l := range s.Links() {
		m.message(13, func(m *message) { m.link(l) })
	}
	m.varint(14, uint64(s.DroppedLinks()))
	if status := s.Status(); status.Code != codes.Unset {
		m.message(15, func(m *message) {
			m.text(2, status.Description)
			m.varint(3, map[codes.Code]uint64{codes.Ok: 1, codes.Error: 2}[status.Code])
		})
	}
	m.fixed32(16, flags(sc, parent.IsRemote()))
}

func (m *message) link(l sdktrace.Link) {
	traceID, spanID := l.SpanContext.TraceID(), l.SpanContext.SpanID()
	m.bytes(1, traceID[:])
	m.bytes(2, spanID[:])
	m.text(3, l.SpanContext.TraceState().String())
	m.attributes(4, l.Attributes)
	m.varint(5, uint64(l.DroppedAttributeCount))
	m.fixed32(6, flags(l.SpanContext, l.SpanContext.IsRemote()))
}

// flags returns the flags of W3C, and whether the span or its parent is in another process.
func flags(sc trace.SpanContext, remote bool) uint32 {
	f := uint32(sc.TraceFlags()) | 0x100
	if remote {
		f |= 0x200
	}
	return f
}
