package telemetry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/telemetry"
)

// silent is a store whose queue cannot be read.
type silent struct {
	belay.TurnStore

	err error
}

func (s silent) Load(context.Context) (belay.Load, error) { return belay.Load{}, s.err }

// If the queue cannot be read, because the store is closed or gone, the other metrics are there.
//
// SPEC O-01
func TestOtherMetricsNeedNoQueue(t *testing.T) {
	t.Parallel()
	for _, reason := range []error{belay.ErrClosed, errors.New("the database is gone")} {
		reader := sdkmetric.NewManualReader()
		made, err := telemetry.New(&telemetry.Options{TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))})
		if err != nil {
			t.Fatal(err)
		}
		if err := made.ObserveQueue(silent{err: reason}); err != nil {
			t.Fatal(err)
		}
		lag, err := made.StreamLag()
		if err != nil {
			t.Fatal(err)
		}
		lag(time.Second)
		var metrics metricdata.ResourceMetrics
		if err := reader.Collect(t.Context(), &metrics); err != nil {
			t.Errorf("%v: no metrics are exported: %v", reason, err)
		}
		if len(metrics.ScopeMetrics) != 1 || len(metrics.ScopeMetrics[0].Metrics) != 1 || metrics.ScopeMetrics[0].Metrics[0].Name != telemetry.MetricStreamLag {
			t.Errorf("%v: the metrics are %+v, want the lag", reason, metrics.ScopeMetrics)
		}
	}
}
