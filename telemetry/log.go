package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/trace"

	"github.com/belay-run/belay/internal/redact"
)

// LogHandler returns a handler for slog that passes records to next, with the attributes
// trace_id and span_id of the span in which they were logged. If provider is not nil, it also
// sends each record of level Info or higher to OpenTelemetry, also if next does not want it.
// Secrets are removed from the messages. Use it for [belay.Options.Logger].
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
}

// Enabled reports whether anybody wants records of a level.
func (h *logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level) || h.sends(level)
}

func (h *logHandler) sends(level slog.Level) bool { return h.bridge != nil && level >= slog.LevelInfo }

// Handle passes a record on.
func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	if h.sends(r.Level) {
		_ = h.bridge.Handle(ctx, redacted(r)) // the provider reports its own errors
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

// redacted returns a record without what looks like a secret. Values that are not simple
// become text first.
func redacted(r slog.Record) slog.Record {
	out := slog.NewRecord(r.Time, r.Level, redact.Text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(redactedAttr(a))
		return true
	})
	return out
}

func redactedAttr(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString, slog.KindAny:
		return slog.String(a.Key, redact.Text(v.String()))
	case slog.KindGroup:
		var inside []any
		for _, one := range v.Group() {
			inside = append(inside, redactedAttr(one))
		}
		return slog.Group(a.Key, inside...)
	default:
		return slog.Attr{Key: a.Key, Value: v}
	}
}

// WithAttrs returns a handler whose records have more attributes.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	other := &logHandler{next: h.next.WithAttrs(attrs), bridge: h.bridge}
	if h.bridge != nil {
		clean := make([]slog.Attr, len(attrs))
		for i, a := range attrs {
			clean[i] = redactedAttr(a)
		}
		other.bridge = h.bridge.WithAttrs(clean)
	}
	return other
}

// WithGroup returns a handler whose later attributes are in a group.
func (h *logHandler) WithGroup(name string) slog.Handler {
	other := &logHandler{next: h.next.WithGroup(name), bridge: h.bridge}
	if h.bridge != nil {
		other.bridge = h.bridge.WithGroup(name)
	}
	return other
}
