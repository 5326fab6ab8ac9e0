package telemetry_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/telemetry"
)

// Hook runs in which nothing happened have no span. Their records are in the journal, and a run
// of the same turn that did something has a span.
//
// SPEC O-01
func TestQuickRunsAreRecordedWithoutSpans(t *testing.T) {
	t.Parallel()
	silent := belay.ToolPre.On("silent", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return belay.Pass, nil }, nil)
	broken := belay.ToolPost.On("broken", func(context.Context, belay.ToolResult) (belay.ToolReaction, error) {
		return belay.ToolReaction{}, errors.New("broken")
	}, nil)
	spans, store := tracetest.NewInMemoryExporter(), memstore.New(nil)
	made, err := telemetry.New(&telemetry.Options{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithIDGenerator(telemetry.IDs{})), MeterProvider: metricnoop.NewMeterProvider(),
	})
	if err != nil {
		t.Fatal(err)
	}
	look := belay.NewTool("look", "looks", func(context.Context, struct{}) (string, error) { return "seen", nil }, nil)
	const turns = 20 // on a busy machine, some of the runs are not quick
	agent, err := belay.New(scripted.New(slices.Repeat([]scripted.Step{{Calls: []scripted.Call{{Tool: "look"}}}, {Text: "done"}}, turns), nil), &belay.Options{
		Tools: []belay.Tool{look}, Hooks: []hook.Subscription{silent, broken}, Store: store, Extensions: []belay.Extension{made},
	})
	if err != nil {
		t.Fatal(err)
	}
	for range turns {
		if _, err := agent.Session("s").Turn(t.Context(), "hello"); err != nil {
			t.Fatal(err)
		}
	}
	if err := agent.Close(t.Context()); err != nil {
		t.Error(err)
	}
	names := make(map[string]int)
	for _, s := range spans.GetSpans() {
		names[s.Name]++
	}
	if names["hook silent"] >= turns || names["hook broken"] != turns {
		t.Errorf("the spans of %d turns are %v", turns, names)
	}
	recorded := make(map[string]int)
	for r, err := range store.Journal().(hook.ListJournal).List(t.Context(), hook.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		recorded[r.Subscription]++
	}
	if recorded["silent"] != turns || recorded["broken"] != turns {
		t.Errorf("the records of %d turns are %v", turns, recorded)
	}
}
