package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/redact"
)

// scopeName is the instrumentation scope of all spans and metrics.
const scopeName = "github.com/belay-run/belay/telemetry"

// Options are the settings of a Telemetry. A nil *Options is valid.
type Options struct {
	// TracerProvider makes the spans. Give it [IDs] as its id generator. Defaults to the
	// global provider of OpenTelemetry.
	TracerProvider trace.TracerProvider
	// MeterProvider makes the metrics. Defaults to the global provider of OpenTelemetry.
	MeterProvider metric.MeterProvider
	// Content adds prompts, inputs and outputs to spans. They may contain personal data.
	// Defaults to false.
	Content bool
	// Redact removes secrets from content. Defaults to a function that removes what looks
	// like a password, a key or a token.
	Redact func(text string) string
	// ContentCharacters is the maximum length of each text of content. Defaults to 4,000.
	ContentCharacters int
	// Quick adds the spans of hook runs and commits that took less than a millisecond, and in
	// which nothing happened: the hook ran in this process, passed and contributed nothing. A
	// turn may have dozens of these. Metrics and "belay runs" always have them. Defaults to
	// false.
	Quick bool
	// URL is the address of the console of "belay serve". With it, the span of a turn has a
	// link to the page of its session. Defaults to no link.
	URL string
}

// Telemetry is a [belay.Extension] that makes traces and metrics.
type Telemetry struct {
	opts    Options
	tracer  trace.Tracer // nil: nobody wants spans
	names   names
	metrics *instruments // nil: nobody reads metrics
}

var (
	_ belay.SpanExtension = (*Telemetry)(nil)
	_ belay.RunSkipper    = (*Telemetry)(nil)
)

// New returns an extension for the agents of a program.
func New(opts *Options) (*Telemetry, error) {
	t := &Telemetry{}
	if opts != nil {
		t.opts = *opts
	}
	if t.opts.TracerProvider == nil {
		t.opts.TracerProvider = otel.GetTracerProvider()
	}
	if t.opts.MeterProvider == nil {
		t.opts.MeterProvider = otel.GetMeterProvider()
	}
	if t.opts.Redact == nil {
		t.opts.Redact = redact.Text
	}
	if t.opts.ContentCharacters <= 0 {
		t.opts.ContentCharacters = 4000
	}
	if _, none := t.opts.TracerProvider.(tracenoop.TracerProvider); !none {
		t.tracer = t.opts.TracerProvider.Tracer(scopeName, trace.WithSchemaURL(semconv.SchemaURL))
	}
	if _, none := t.opts.MeterProvider.(metricnoop.MeterProvider); none {
		return t, nil
	}
	var err error
	t.metrics, err = newInstruments(t.opts.MeterProvider.Meter(scopeName, metric.WithSchemaURL(semconv.SchemaURL)))
	return t, err
}

// Name returns "telemetry".
func (t *Telemetry) Name() string { return "telemetry" }

// Follow begins the span of a turn or a job. It returns no follower if the turn is not
// sampled and there are no metrics.
func (t *Telemetry) Follow(ctx context.Context, root *belay.Span) (context.Context, belay.SpanFollower) { //nolint:ireturn // the interface asks for it
	if t.tracer == nil {
		if t.metrics == nil {
			return ctx, nil
		}
		return ctx, t
	}
	p := t.begin(ctx, root)
	switch {
	case p.recording():
		p.here = time.Now()
	case t.metrics == nil:
		return p.ctx, nil
	}
	return p.ctx, t
}

// BeginSpan begins a span inside a turn.
func (t *Telemetry) BeginSpan(ctx context.Context, span *belay.Span) context.Context {
	above := placeOf(ctx)
	if above == nil || !above.recording() {
		return ctx // metrics need only the end
	}
	return t.inside(ctx, above, span)
}

// SkipsRuns returns which hook runs have neither a span nor metrics.
func (t *Telemetry) SkipsRuns() time.Duration {
	if t.opts.Quick || t.metrics != nil {
		return 0
	}
	return quick
}

// EndSpan ends a span, unless another process will end it, and records its metrics.
func (t *Telemetry) EndSpan(ctx context.Context, span *belay.Span) {
	if t.metrics != nil && !span.Suspended {
		t.metrics.record(ctx, span)
	}
	if p := placeOf(ctx); p != nil && p.recording() {
		t.end(ctx, p, span)
	}
}
