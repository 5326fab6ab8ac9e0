// Package telemetry sends traces and metrics of agents to OpenTelemetry. It is the only
// package of Belay that imports OpenTelemetry.
//
// # Usage
//
// Add one value to the extensions of an agent:
//
//	provider := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithIDGenerator(telemetry.IDs{}))
//	traced, err := telemetry.New(&telemetry.Options{TracerProvider: provider})
//	...
//	agent, err := belay.New(model, &belay.Options{Extensions: []belay.Extension{traced}})
//
// All agents of a program can share the value. It closes nothing: shut your providers down
// when the program ends.
//
// # One trace for each turn
//
// The id of a trace is a hash of the session and the turn, and so are the ids of the spans that
// may begin in one process and end in another: the turn, its steps and its calls. Whichever
// process finishes such a span exports it. So a turn that was parked, or whose process was
// killed, and that another worker has resumed, is one tree. And the stored session is enough
// to find the trace: see [TraceID]. Nothing has to be stored for that.
//
// This needs [IDs] as the id generator of the tracer provider. Without it, all spans of a turn
// still have the same trace id, but the spans of an interrupted step may lack their parent.
//
// If the context of a turn has a span of the program, the turn and that span are connected by
// links. The turn does not become part of the program's trace: a turn may outlive the request
// that began it by days, and another process may end it.
//
// The turn of a subagent belongs to the trace of the turn that called it.
//
// # Content
//
// Spans have names, ids, times, numbers and codes. The name of a tool that does not exist is
// left out, because the model has made it up. They have no prompts, inputs, outputs or
// messages of errors, because these may contain anything. [Options.Content] adds prompts,
// inputs and outputs, without what looks like a secret.
//
// # Concurrency
//
// A Telemetry is safe for concurrent use. It starts no goroutine.
//
// # Errors
//
// Telemetry never fails a turn. What exporters report goes to the error handler of
// OpenTelemetry.
//
// # Testing
//
// Give the tracer provider an exporter that keeps spans in memory, such as the one in the
// SDK's package tracetest. The tests of package otlp send to a collector on loopback, which
// decodes what it gets with the official types.
package telemetry
