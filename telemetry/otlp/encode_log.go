package otlp

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdklog "go.opentelemetry.io/otel/sdk/log"
)

// encodeLogs encodes an ExportLogsServiceRequest. All records have the resource of one
// provider.
func encodeLogs(records []sdklog.Record) []byte {
	all := make([]*sdklog.Record, len(records))
	for i := range records {
		all[i] = &records[i]
	}
	var m message
	m.message(1, func(m *message) {
		m.resource(all[0].Resource())
		scopes, inside := byScope(all, func(r *sdklog.Record) instrumentation.Scope { return r.InstrumentationScope() })
		for _, scope := range scopes {
			m.message(2, func(m *message) {
				m.scope(scope)
				for _, r := range inside[scope] {
					m.message(2, func(m *message) { m.record(r) })
				}
				m.text(3, scope.SchemaURL)
			})
		}
	})
	return m
}

func (m *message) record(r *sdklog.Record) {
	m.time(1, r.Timestamp())
	m.varint(2, uint64(r.Severity()))
	m.text(3, r.SeverityText())
	m.message(5, func(m *message) { m.value(r.Body()) })
	var attrs []attribute.KeyValue
	r.WalkAttributes(func(kv attribute.KeyValue) bool { attrs = append(attrs, kv); return true })
	m.attributes(6, attrs)
	m.varint(7, uint64(r.DroppedAttributes()))
	m.fixed32(8, uint32(r.TraceFlags()))
	traceID, spanID := r.TraceID(), r.SpanID()
	if traceID.IsValid() {
		m.bytes(9, traceID[:])
		m.bytes(10, spanID[:])
	}
	m.time(11, r.ObservedTimestamp())
	m.text(12, r.EventName())
}
