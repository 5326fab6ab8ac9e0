package telemetry_test

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/telemetry"
)

// instant calls a tool once in each turn.
type instant struct{}

func (instant) Stream(_ context.Context, r *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		response := &belay.Response{Parts: []belay.Part{belay.Text("done")}, StopReason: belay.StopEnd, Usage: belay.Usage{In: 100, Out: 10}}
		if last := r.Messages[len(r.Messages)-1]; last.Parts[0].Result == nil {
			response.StopReason = belay.StopToolUse
			response.Parts = []belay.Part{{Type: belay.PartCall, Call: &belay.CallPart{ID: "c1", Tool: "look", Input: json.RawMessage(`{}`)}}}
		}
		yield(belay.Chunk{Response: response}, nil)
	}
}

// allocationsOfTurn returns how many allocations a turn with extensions needs: the fewest of
// some measurements, because a collection of garbage empties the pools.
func allocationsOfTurn(t *testing.T, with ...belay.Extension) int {
	t.Helper()
	look := belay.NewTool("look", "looks", func(context.Context, struct{}) (string, error) { return "seen", nil }, nil)
	agent, err := belay.New(instant{}, &belay.Options{Tools: []belay.Tool{look}, Store: memstore.New(nil), Extensions: with})
	if err != nil {
		t.Fatal(err)
	}
	s := agent.Session("s")
	counts := make([]int, 5)
	for i := range counts {
		counts[i] = int(testing.AllocsPerRun(20, func() {
			if _, err := s.Turn(context.Background(), "look"); err != nil {
				t.Fatal(err)
			}
		}))
	}
	if err := agent.Close(context.Background()); err != nil {
		t.Error(err)
	}
	return slices.Min(counts)
}

// The time of a turn varies, but not its allocations. If nothing is sampled, the package keeps
// only the place of the turn, and the SDK needs a few more. If nobody wants spans, it needs none.
//
// SPEC O-01
func TestTurnWithoutSpansCostsNearlyNothing(t *testing.T) { //nolint:paralleltest // it counts allocations
	without := allocationsOfTurn(t)
	for name, c := range map[string]struct {
		provider trace.TracerProvider
		most     int
	}{
		"nobody wants spans": {tracenoop.NewTracerProvider(), 0},
		"nothing is sampled": {sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()), sdktrace.WithIDGenerator(telemetry.IDs{})), 3},
	} {
		made, err := telemetry.New(&telemetry.Options{TracerProvider: c.provider, MeterProvider: metricnoop.NewMeterProvider()})
		if err != nil {
			t.Fatal(err)
		}
		if more := allocationsOfTurn(t, made) - without; more > c.most+1 { // 1: the mean is rounded
			t.Errorf("%s: a turn needs %d more allocations, want at most %d", name, more, c.most)
		}
	}
}

// A sampled turn needs little more than its six spans, if these are made with the SDK directly.
//
// SPEC O-01
func TestSpansCostLittleMoreThanTheSDK(t *testing.T) { //nolint:paralleltest // it counts allocations
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(dropped{}), sdktrace.WithIDGenerator(telemetry.IDs{}))
	made, err := telemetry.New(&telemetry.Options{TracerProvider: provider, MeterProvider: metricnoop.NewMeterProvider()})
	if err != nil {
		t.Fatal(err)
	}
	more := allocationsOfTurn(t, made) - allocationsOfTurn(t)
	tracer, like := provider.Tracer("bare"), []attribute.KeyValue{attribute.String("a", "b"), attribute.Int("c", 1)}
	bare := int(testing.AllocsPerRun(100, func() {
		for range 6 {
			_, s := tracer.Start(context.Background(), "a span")
			s.SetAttributes(like...)
			s.End()
		}
	}))
	if more > bare+16 { // 7 without the race detector, which drops a part of what is in a pool
		t.Errorf("a turn needs %d more allocations with spans, and its six spans alone need %d", more, bare)
	}
}

// dropped is an exporter that keeps nothing.
type dropped struct{}

func (dropped) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (dropped) Shutdown(context.Context) error                             { return nil }
