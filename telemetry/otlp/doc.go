// Package otlp makes the providers of OpenTelemetry that the variables OTEL_* ask for. It
// sends spans, metrics and logs to a collector with OTLP over HTTP. The command line uses it.
//
// It exists because the official exporters link gRPC, which is several megabytes, also if they
// speak HTTP. A program that does not mind can use those.
//
// # Usage
//
//	providers, err := otlp.Open(&otlp.Options{Program: "my-agent"})
//	...
//	defer providers.Shutdown(ctx)
//	telemetry.New(&telemetry.Options{TracerProvider: providers.Tracer, MeterProvider: providers.Meter})
//
// # Variables
//
// Without a variable that names an endpoint or an exporter, Open makes no exporter, and
// nothing uses the network. docs/telemetry.md lists the variables.
//
// # Concurrency
//
// Spans and logs are sent by goroutines of the SDK, in batches. A collector that is slow or
// gone never delays a turn: when the queue is full, spans are dropped. Shutdown sends what is
// left, until its context ends.
//
// # Errors
//
// Open returns an error for a variable with a wrong value. Later errors go to Options.Errors.
//
// # Testing
//
// Give Open an Environ with the address of a test server. What is sent is the body of an
// ExportTraceServiceRequest, an ExportMetricsServiceRequest or an ExportLogsServiceRequest.
package otlp
