package otlp

import (
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	"google.golang.org/protobuf/encoding/protowire"
)

// message is a protobuf message that is being encoded. The methods leave out zero values, as
// proto3 does.
type message []byte

func (m *message) text(field protowire.Number, value string) {
	if value != "" {
		*m = protowire.AppendString(protowire.AppendTag(*m, field, protowire.BytesType), value)
	}
}

func (m *message) bytes(field protowire.Number, value []byte) {
	if len(value) > 0 {
		*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), value)
	}
}

func (m *message) varint(field protowire.Number, value uint64) {
	if value != 0 {
		*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), value)
	}
}

func (m *message) fixed32(field protowire.Number, value uint32) {
	if value != 0 {
		*m = protowire.AppendFixed32(protowire.AppendTag(*m, field, protowire.Fixed32Type), value)
	}
}

func (m *message) fixed64(field protowire.Number, value uint64) {
	if value != 0 {
		m.exact64(field, value)
	}
}

// exact64 appends a value even if it is zero, for fields that say whether they are set.
func (m *message) exact64(field protowire.Number, value uint64) {
	*m = protowire.AppendFixed64(protowire.AppendTag(*m, field, protowire.Fixed64Type), value)
}

func (m *message) double(field protowire.Number, value float64) {
	m.exact64(field, math.Float64bits(value))
}

func (m *message) time(field protowire.Number, at time.Time) {
	if !at.IsZero() {
		m.fixed64(field, uint64(at.UnixNano()))
	}
}

// message appends a message inside this one, which may be empty.
func (m *message) message(field protowire.Number, encode func(*message)) {
	var inner message
	encode(&inner)
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), inner)
}

func (m *message) attributes(field protowire.Number, all []attribute.KeyValue) {
	for _, a := range all {
		m.message(field, func(m *message) {
			m.text(1, string(a.Key))
			m.message(2, func(m *message) { m.value(a.Value) })
		})
	}
}

// value encodes an AnyValue.
func (m *message) value(v attribute.Value) {
	switch v.Type() {
	case attribute.BOOL:
		m.truth(v.AsBool())
	case attribute.INT64:
		m.integer(v.AsInt64())
	case attribute.FLOAT64:
		m.double(4, v.AsFloat64())
	case attribute.STRINGSLICE:
		array(m, v.AsStringSlice(), (*message).string)
	case attribute.BOOLSLICE:
		array(m, v.AsBoolSlice(), (*message).truth)
	case attribute.INT64SLICE:
		array(m, v.AsInt64Slice(), (*message).integer)
	case attribute.FLOAT64SLICE:
		array(m, v.AsFloat64Slice(), func(m *message, f float64) { m.double(4, f) })
	case attribute.EMPTY:
	default:
		m.string(v.String())
	}
}

func (m *message) string(text string) {
	*m = protowire.AppendString(protowire.AppendTag(*m, 1, protowire.BytesType), text)
}

func (m *message) truth(yes bool) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, 2, protowire.VarintType), protowire.EncodeBool(yes))
}

func (m *message) integer(n int64) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, 3, protowire.VarintType), uint64(n))
}

func array[T any](m *message, all []T, encode func(*message, T)) {
	m.message(5, func(m *message) {
		for _, one := range all {
			m.message(1, func(m *message) { encode(m, one) })
		}
	})
}

func (m *message) resource(r *resource.Resource) {
	m.message(1, func(m *message) { m.attributes(1, r.Attributes()) })
}

func (m *message) scope(s instrumentation.Scope) {
	m.message(1, func(m *message) {
		m.text(1, s.Name)
		m.text(2, s.Version)
		m.attributes(3, s.Attributes.ToSlice())
	})
}
