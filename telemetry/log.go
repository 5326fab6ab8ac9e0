package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/trace"

	"github.com/belay-run/belay/internal/redact"
)

// LogHandler returns a handler for slog that passes records to next, with the attributes
// trace_id and span_id of the span in which they were logged. If provider is not nil, it also
// sends each record of level Info or higher to OpenTelemetry, also if next does not want it.
// Secrets are removed from what is sent: what looks like one, and the values of attributes and
// groups that are called like one, such as password. Use it for [belay.Options.Logger].
func LogHandler(next slog.Handler, provider log.LoggerProvider) slog.Handler {
	h := &logHandler{next: next}
	if provider != nil {
		h.bridge = otelslog.NewHandler(scopeName, otelslog.WithLoggerProvider(provider))
	}
	return h
}

type logHandler struct {
	next   slog.Handler
	bridge slog.Handler // nil: records are not sent
	secret string       // the name of a group around all further attributes that is called like a secret, or ""
}

// Enabled reports whether anybody wants records of a level.
func (h *logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level) || h.sends(level)
}

func (h *logHandler) sends(level slog.Level) bool { return h.bridge != nil && level >= slog.LevelInfo }

// Handle passes a record on.
func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	if h.sends(r.Level) {
		_ = h.bridge.Handle(ctx, h.redacted(r)) // the provider reports its own errors
	}
	if !h.next.Enabled(ctx, r.Level) {
		return nil
	}
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", sc.TraceID().String()), slog.String("span_id", sc.SpanID().String()))
	}
	return h.next.Handle(ctx, r) //nolint:wrapcheck // it is the handler's error
}

// redacted returns a record without secrets. Values that are not simple become text first.
func (h *logHandler) redacted(r slog.Record) slog.Record {
	out := slog.NewRecord(r.Time, r.Level, redact.Text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(redactedAttr(h.secret, a))
		return true
	})
	return out
}

// redactedAttr returns an attribute without secrets. secret is the name of a group around it that is
// called like a secret, or "".
func redactedAttr(secret string, a slog.Attr) slog.Attr {
	if redact.Name(a.Key) {
		secret = a.Key
	}
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		var inside []any
		for _, one := range v.Group() {
			inside = append(inside, redactedAttr(secret, one))
		}
		return slog.Group(a.Key, inside...)
	}
	text := written(v)
	clean := redact.Value(secret, text)
	if v.Kind() == slog.KindString || v.Kind() == slog.KindAny || clean != text {
		return slog.String(a.Key, clean)
	}
	return slog.Attr{Key: a.Key, Value: v}
}

// written returns a value as text. Structs and maps become JSON, because the names of their fields
// show what is a secret.
func written(v slog.Value) string {
	switch of := v.Any().(type) {
	case string, error, fmt.Stringer:
	default:
		if data, err := json.Marshal(of); err == nil {
			return string(redact.JSON(data))
		}
	}
	return v.String()
}

// WithAttrs returns a handler whose records have more attributes.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	other := *h
	other.next = h.next.WithAttrs(attrs)
	if h.bridge != nil {
		clean := make([]slog.Attr, len(attrs))
		for i, a := range attrs {
			clean[i] = redactedAttr(h.secret, a)
		}
		other.bridge = h.bridge.WithAttrs(clean)
	}
	return &other
}

// WithGroup returns a handler whose later attributes are in a group.
func (h *logHandler) WithGroup(name string) slog.Handler {
	other := *h
	other.next = h.next.WithGroup(name)
	if h.bridge != nil {
		other.bridge = h.bridge.WithGroup(name)
	}
	if redact.Name(name) {
		other.secret = name
	}
	return &other
}
