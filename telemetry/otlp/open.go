package otlp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/belay-run/belay/telemetry"
)

// Options are the settings of Open. A nil *Options is valid.
type Options struct {
	// Environ has the environment variables. The SDK reads some of them from os.Environ in
	// any case. Defaults to os.Environ.
	Environ []string
	// Program and Version are the name and the version of the program, which are the
	// attributes service.name and service.version. A variable can override them. Program
	// defaults to "belay".
	Program, Version string
	// Scraped makes a MeterProvider even if no variable asks for an exporter, for
	// [Providers.ServeHTTP]. Defaults to false.
	Scraped bool
	// Errors gets the errors of exporters. It sets the error handler of OpenTelemetry for the
	// whole process. Defaults to the handler that OpenTelemetry has.
	Errors func(error)
}

// Providers are the providers that the environment asks for.
type Providers struct {
	// Tracer and Meter do nothing if the environment does not ask for them: nil would mean the
	// global ones of OpenTelemetry.
	Tracer trace.TracerProvider
	Meter  metric.MeterProvider
	// Logger is nil if the environment does not ask for it.
	Logger log.LoggerProvider

	stops  []func(context.Context) error
	scrape func(context.Context, *metricdata.ResourceMetrics) error // nil unless Options.Scraped
}

// Open makes the providers. It uses no network.
func Open(opts *Options) (*Providers, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	env := newEnvironment(o.Environ)
	about, err := describe(env, &o)
	if err != nil {
		return nil, err
	}
	if o.Errors != nil {
		otel.SetErrorHandler(otel.ErrorHandlerFunc(o.Errors))
	}
	p := &Providers{Tracer: tracenoop.NewTracerProvider(), Meter: metricnoop.NewMeterProvider()}
	if s, err := env.sender(traces); err != nil {
		return nil, err
	} else if s != nil {
		made := sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithIDGenerator(telemetry.IDs{}), sdktrace.WithBatcher(spanExporter{s}))
		p.Tracer, p.stops = made, append(p.stops, made.Shutdown)
	}
	var readers []sdkmetric.Option
	if s, err := env.sender(metrics); err != nil {
		return nil, err
	} else if s != nil {
		readers = append(readers, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metricExporter{s})))
	}
	if o.Scraped {
		reader := sdkmetric.NewManualReader()
		p.scrape = reader.Collect
		readers = append(readers, sdkmetric.WithReader(reader))
	}
	if len(readers) > 0 {
		made := sdkmetric.NewMeterProvider(append(readers, sdkmetric.WithResource(about))...)
		p.Meter, p.stops = made, append(p.stops, made.Shutdown)
	}
	if s, err := env.sender(logs); err != nil {
		return nil, err
	} else if s != nil {
		made := sdklog.NewLoggerProvider(sdklog.WithResource(about), sdklog.WithProcessor(sdklog.NewBatchProcessor(logExporter{s})))
		p.Logger, p.stops = made, append(p.stops, made.Shutdown)
	}
	return p, nil
}

// sender returns the sender of a signal, or nil if the signal is not exported.
func (e environment) sender(s signal) (*sender, error) {
	if !e.wants(s) {
		return nil, nil //nolint:nilnil // the comment says what nil means
	}
	t, err := e.target(s)
	if err != nil {
		return nil, err
	}
	return newSender(t)
}

// describe describes this process. Each process is an instance of its own, so that the
// metrics of several workers do not overwrite each other.
func describe(env environment, o *Options) (*resource.Resource, error) {
	service, given, err := env.resource()
	if err != nil {
		return nil, err
	}
	if service == "" {
		service = o.Program
	}
	if service == "" {
		service = "belay"
	}
	all := []attribute.KeyValue{
		semconv.ServiceName(service), semconv.ServiceInstanceID(rand.Text()), semconv.ProcessPID(os.Getpid()),
		semconv.TelemetrySDKLanguageGo, semconv.TelemetrySDKName("opentelemetry"), semconv.TelemetrySDKVersion(otel.Version()),
	}
	if o.Version != "" {
		all = append(all, semconv.ServiceVersion(o.Version))
	}
	if host, err := os.Hostname(); err == nil {
		all = append(all, semconv.HostName(host))
	}
	for name, value := range given {
		all = append(all, attribute.String(name, value)) // later values win
	}
	return resource.NewWithAttributes(semconv.SchemaURL, all...), nil
}

// Shutdown sends what is left, and stops the providers. It takes no longer than ctx.
func (p *Providers) Shutdown(ctx context.Context) error {
	failed := make(chan error, len(p.stops))
	for _, stop := range p.stops {
		go func() { failed <- stop(ctx) }() // ends soon after ctx
	}
	var problems []error
	for range p.stops {
		select {
		case err := <-failed:
			problems = append(problems, err)
		case <-ctx.Done():
			return errors.Join(append(problems, fmt.Errorf("telemetry: %w", context.Cause(ctx)))...)
		}
	}
	return errors.Join(problems...)
}

type spanExporter struct{ *sender }

// ExportSpans sends spans.
func (e spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	return e.send(ctx, encodeSpans(spans))
}

// Shutdown closes the connections.
func (s *sender) Shutdown(context.Context) error {
	s.client.CloseIdleConnections()
	return nil
}

// ForceFlush does nothing: nothing is kept.
func (s *sender) ForceFlush(context.Context) error { return nil }

type metricExporter struct{ *sender }

// Temporality returns the default: cumulative.
func (metricExporter) Temporality(k sdkmetric.InstrumentKind) metricdata.Temporality {
	return sdkmetric.DefaultTemporalitySelector(k)
}

// Aggregation returns the default.
func (metricExporter) Aggregation(k sdkmetric.InstrumentKind) sdkmetric.Aggregation { //nolint:ireturn // as the SDK wants it
	return sdkmetric.DefaultAggregationSelector(k)
}

// Export sends metrics.
func (e metricExporter) Export(ctx context.Context, all *metricdata.ResourceMetrics) error {
	if len(all.ScopeMetrics) == 0 {
		return nil
	}
	return e.send(ctx, encodeMetrics(all))
}

type logExporter struct{ *sender }

// Export sends log records.
func (e logExporter) Export(ctx context.Context, records []sdklog.Record) error {
	if len(records) == 0 {
		return nil
	}
	return e.send(ctx, encodeLogs(records))
}
