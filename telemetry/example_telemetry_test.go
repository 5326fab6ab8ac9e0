package telemetry_test

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/telemetry"
)

// This example prints the spans of a turn in the order in which they ended. A program sends
// them with an exporter of OpenTelemetry, or with package otlp.
func Example() {
	ctx := context.Background()
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "lookup", Input: `{}`}}},
		{Text: "The fern needs water."},
	}, nil)
	lookup := belay.NewTool("lookup", "Looks up a note.", func(context.Context, struct{}) (string, error) { return "fern: dry", nil }, nil)
	exporter := tracetest.NewInMemoryExporter()

	// docs:begin telemetry
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSyncer(exporter), // in a real program: WithBatcher, with an exporter
		sdktrace.WithIDGenerator(telemetry.IDs{}),
	)
	traced, err := telemetry.New(&telemetry.Options{TracerProvider: provider})
	if err != nil {
		panic(err)
	}
	agent, err := belay.New(model, &belay.Options{
		Tools:      []belay.Tool{lookup},
		Extensions: []belay.Extension{traced},
	})
	// docs:end telemetry
	if err != nil {
		panic(err)
	}
	turn, err := agent.Session("demo").Turn(ctx, "What about the fern?")
	if err != nil {
		panic(err)
	}
	for _, span := range exporter.GetSpans() {
		if span.Name != "commit" { // only a slow one has a span
			fmt.Println(span.Name)
		}
	}
	fmt.Println(exporter.GetSpans()[0].SpanContext.TraceID() == telemetry.TraceID("demo", turn.ID))
	// Output:
	// chat scripted/script
	// execute_tool lookup
	// step 1
	// chat scripted/script
	// step 2
	// invoke_agent main
	// true
}
