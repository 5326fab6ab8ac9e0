package telemetry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/belay-run/belay"
)

// ObserveQueue adds the metrics of the queue of turns, which the store knows. It asks the
// store each time that the metrics are read. Call it once for a store, in each process that
// should report the queue. While the store does not answer, these metrics are missing, and the error
// handler of OpenTelemetry gets the reason. A closed store has no queue.
func (t *Telemetry) ObserveQueue(store belay.TurnStore) error {
	if t.metrics == nil {
		return nil
	}
	meter := t.opts.MeterProvider.Meter(scopeName)
	depth, err := meter.Int64ObservableGauge(MetricQueueDepth, metric.WithUnit("{turn}"), metric.WithDescription("Turns in the queue: waiting, running or parked."))
	if err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	age, err := meter.Float64ObservableGauge(MetricQueueAge, metric.WithUnit("s"), metric.WithDescription("How long the oldest waiting turn has been due."))
	if err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	state := func(name string) metric.MeasurementOption { return metric.WithAttributes(hookState.String(name)) }
	waiting, running, parked := state("waiting"), state("running"), state("parked")
	_, err = meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		load, err := store.Load(ctx)
		if err != nil { // to return it would lose all other metrics, too: readers then export none
			if !errors.Is(err, belay.ErrClosed) {
				otel.Handle(fmt.Errorf("telemetry: read the queue: %w", err))
			}
			return nil
		}
		turns := 0
		for i := range load.Holders {
			turns += len(load.Holders[i].Turns)
		}
		o.ObserveInt64(depth, int64(load.Waiting), waiting)
		o.ObserveInt64(depth, int64(turns), running)
		o.ObserveInt64(depth, int64(load.Parked), parked)
		o.ObserveFloat64(age, load.OldestAge.Seconds())
		return nil
	}, depth, age)
	if err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	return nil
}

// StreamLag returns a function that records how long after an event a client of a stream got
// it. It returns nil if nobody reads metrics.
func (t *Telemetry) StreamLag() (func(time.Duration), error) {
	if t.metrics == nil {
		return nil, nil //nolint:nilnil // nil is a valid function here
	}
	lag, err := t.opts.MeterProvider.Meter(scopeName).Float64Histogram(MetricStreamLag, metric.WithUnit("s"),
		metric.WithDescription("Time from an event to its delivery to a client of a stream."), metric.WithExplicitBucketBoundaries(fastSeconds...))
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	none := metric.WithAttributeSet(*attribute.EmptySet())
	return func(d time.Duration) { lag.Record(context.Background(), d.Seconds(), none) }, nil
}
