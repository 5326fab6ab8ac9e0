package otlp

import (
	"math"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/protobuf/encoding/protowire"
)

// encodeMetrics encodes an ExportMetricsServiceRequest. Exemplars are left out.
func encodeMetrics(all *metricdata.ResourceMetrics) []byte {
	var m message
	m.message(1, func(m *message) {
		m.resource(all.Resource)
		for i := range all.ScopeMetrics {
			inside := &all.ScopeMetrics[i]
			m.message(2, func(m *message) {
				m.scope(inside.Scope)
				for _, one := range inside.Metrics {
					m.message(2, func(m *message) { m.metric(one) })
				}
				m.text(3, inside.Scope.SchemaURL)
			})
		}
	})
	return m
}

func (m *message) metric(one metricdata.Metrics) {
	m.text(1, one.Name)
	m.text(2, one.Description)
	m.text(3, one.Unit)
	switch data := one.Data.(type) {
	case metricdata.Gauge[int64]:
		m.message(5, func(m *message) { points(m, data.DataPoints) })
	case metricdata.Gauge[float64]:
		m.message(5, func(m *message) { points(m, data.DataPoints) })
	case metricdata.Sum[int64]:
		m.message(7, func(m *message) { sum(m, data) })
	case metricdata.Sum[float64]:
		m.message(7, func(m *message) { sum(m, data) })
	case metricdata.Histogram[int64]:
		m.message(9, func(m *message) { histogram(m, data) })
	case metricdata.Histogram[float64]:
		m.message(9, func(m *message) { histogram(m, data) })
	}
}

// temporality returns the value of protobuf: 1 is delta and 2 is cumulative.
func temporality(t metricdata.Temporality) uint64 {
	if t == metricdata.DeltaTemporality {
		return 1
	}
	return 2
}

func sum[N int64 | float64](m *message, data metricdata.Sum[N]) {
	points(m, data.DataPoints)
	m.varint(2, temporality(data.Temporality))
	m.varint(3, protowire.EncodeBool(data.IsMonotonic))
}

func points[N int64 | float64](m *message, all []metricdata.DataPoint[N]) {
	for _, p := range all {
		m.message(1, func(m *message) {
			m.time(2, p.StartTime)
			m.time(3, p.Time)
			switch value := any(p.Value).(type) {
			case int64:
				m.exact64(6, uint64(value))
			case float64:
				m.double(4, value)
			}
			m.attributes(7, p.Attributes.ToSlice())
		})
	}
}

func histogram[N int64 | float64](m *message, data metricdata.Histogram[N]) {
	for _, p := range data.DataPoints {
		m.message(1, func(m *message) {
			m.time(2, p.StartTime)
			m.time(3, p.Time)
			m.fixed64(4, p.Count)
			m.double(5, float64(p.Sum))
			m.bytes(6, packed(p.BucketCounts, func(n uint64) uint64 { return n }))
			m.bytes(7, packed(p.Bounds, math.Float64bits))
			m.attributes(9, p.Attributes.ToSlice())
			if low, ok := p.Min.Value(); ok {
				m.double(11, float64(low))
			}
			if high, ok := p.Max.Value(); ok {
				m.double(12, float64(high))
			}
		})
	}
	m.varint(2, temporality(data.Temporality))
}

func packed[T any](all []T, bits func(T) uint64) []byte {
	out := make([]byte, 0, 8*len(all))
	for _, one := range all {
		out = protowire.AppendFixed64(out, bits(one))
	}
	return out
}
