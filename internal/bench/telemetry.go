package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/store/sqlite"
	"github.com/belay-run/belay/telemetry"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// telemetryPromises are the promises about the cost of package telemetry. The floor is the
// same turn without the package. telemetry-spans has the turn in memory, whose model and tool
// return at once: it takes less time than its six spans take in the SDK alone. So
// telemetry-over-sdk compares it with the turn without the package plus six spans that are made
// with the SDK directly, with as many attributes. telemetry-durable has the turn with a store
// in a file, with spans and metrics.
func telemetryPromises() []promise {
	return []promise{
		{"telemetry-off", 1.05, func() (float64, error) {
			return telemetryRatio(&telemetry.Options{
				TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()), sdktrace.WithIDGenerator(telemetry.IDs{})),
				MeterProvider:  metricnoop.NewMeterProvider(),
			}, nil, inMemory)
		}},
		{"telemetry-spans", 1.5, func() (float64, error) {
			kept, provider := keptSpans()
			return telemetryRatio(&telemetry.Options{TracerProvider: provider, MeterProvider: metricnoop.NewMeterProvider()}, kept.drop, inMemory)
		}},
		{"telemetry-over-sdk", 1.5, telemetryOverSDK},
		{"telemetry-durable", 1.5, func() (float64, error) {
			kept, provider := keptSpans()
			return telemetryRatio(&telemetry.Options{
				TracerProvider: provider, MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())), Quick: true,
			}, kept.drop, inFile)
		}},
	}
}

// spanKeeper is an exporter that keeps the spans in memory as they are. The one of package
// tracetest copies each into another form.
type spanKeeper struct {
	mu    sync.Mutex
	spans []sdktrace.ReadOnlySpan
}

func (k *spanKeeper) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.spans = append(k.spans, spans...)
	return nil
}

func (*spanKeeper) Shutdown(context.Context) error { return nil }

func (k *spanKeeper) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.spans)
	k.spans = k.spans[:0]
}

// keptSpans returns a provider that keeps spans in memory.
func keptSpans() (*spanKeeper, *sdktrace.TracerProvider) {
	kept := new(spanKeeper)
	return kept, sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept), sdktrace.WithIDGenerator(telemetry.IDs{}))
}

// telemetryOverSDK returns the time of a turn with spans divided by the time of the same turn
// without the package and of its spans, made with the SDK.
func telemetryOverSDK() (float64, error) {
	kept, provider := keptSpans()
	made, err := telemetry.New(&telemetry.Options{TracerProvider: provider, MeterProvider: metricnoop.NewMeterProvider()})
	if err != nil {
		return 0, err
	}
	with, end, err := turnsFollowed(inMemory, made)
	if err != nil {
		return 0, err
	}
	defer end()
	without, endOther, err := turnsFollowed(inMemory)
	if err != nil {
		return 0, err
	}
	defer endOther()
	with(1)
	if len(kept.spans) < 6 {
		return 0, fmt.Errorf("a turn has %d spans, want at least 6", len(kept.spans))
	}
	like := slices.Clone(kept.spans[:6])
	tracer := provider.Tracer("bench")
	return ratio(func(n int) {
		with(n)
		kept.drop()
	}, func(n int) {
		without(n)
		for range n {
			bareSpans(tracer, like)
		}
		kept.drop()
	}), nil
}

// bareSpans makes spans with the names and attributes of others, each inside the one before.
func bareSpans(tracer trace.Tracer, like []sdktrace.ReadOnlySpan) {
	inside := ctx
	spans := make([]trace.Span, len(like))
	for i := range like {
		inside, spans[i] = tracer.Start(inside, like[i].Name()) //nolint:spancheck,fatcontext // it ends below; each span is inside the one before
	}
	for i, s := range spans {
		s.SetAttributes(like[i].Attributes()...)
		s.End()
	}
}

// storeFor opens a store. The function that it returns removes the store.
type storeFor func() (belay.Store, func(), error)

//nolint:ireturn // it is a storeFor
func inMemory() (belay.Store, func(), error) { return memstore.New(nil), func() {}, nil }

func inFile() (belay.Store, func(), error) { //nolint:ireturn // it is a storeFor
	dir, err := os.MkdirTemp("", "belay-bench-")
	if err != nil {
		return nil, nil, err
	}
	store, err := sqlite.Open(ctx, filepath.Join(dir, "belay.db"), nil)
	return store, func() { must(store.Close()); must(os.RemoveAll(dir)) }, err
}

// telemetryRatio returns the time of a turn with the package divided by the time of the same
// turn without it. It calls reset after each group of turns.
func telemetryRatio(opts *telemetry.Options, reset func(), open storeFor) (float64, error) {
	made, err := telemetry.New(opts)
	if err != nil {
		return 0, err
	}
	with, end, err := turnsFollowed(open, made)
	if err != nil {
		return 0, err
	}
	defer end()
	without, endOther, err := turnsFollowed(open)
	if err != nil {
		return 0, err
	}
	defer endOther()
	return ratio(func(n int) {
		with(n)
		if reset != nil {
			reset()
		}
	}, without), nil
}

// turnsFollowed is turns for an agent with extensions. The second function closes its store.
func turnsFollowed(open storeFor, extensions ...belay.Extension) (func(n int), func(), error) {
	store, end, err := open()
	if err != nil {
		return nil, nil, err
	}
	agent, err := belay.New(instant{}, &belay.Options{Tools: []belay.Tool{echoTool}, Hooks: tenHooks(), Store: store, Extensions: extensions})
	return func(n int) {
		s := agent.Session("turns")
		for range n {
			takeTurn(s)
		}
		must(s.Close(ctx))
		if forgets, ok := store.(*memstore.Store); ok {
			must(forgets.Forget("turns"))
		}
	}, end, err
}
