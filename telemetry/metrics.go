package telemetry

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// The names of the metrics.
const (
	MetricModelDuration  = "gen_ai.client.operation.duration"
	MetricTokens         = "gen_ai.client.token.usage" //nolint:gosec // no credentials
	MetricCost           = "belay.cost"
	MetricTurnDuration   = "belay.turn.duration"
	MetricToolDuration   = "belay.tool.duration"
	MetricDenials        = "belay.denials"
	MetricApprovalWait   = "belay.approval.wait"
	MetricHookDuration   = "belay.hook.duration"
	MetricJobDuration    = "belay.job.duration"
	MetricCommitDuration = "belay.commit.duration"
	MetricQueueDepth     = "belay.queue.depth"
	MetricQueueAge       = "belay.queue.age"
	MetricStreamLag      = "belay.stream.lag"
)

// instruments are the metrics of the spans.
type instruments struct {
	modelDuration, tokens, turnDuration, toolDuration, approvalWait, hookDuration, jobDuration, commitDuration metric.Float64Histogram

	cost    metric.Float64Counter
	denials metric.Int64Counter

	// options has the attributes of a measurement by their values, because making a set of
	// attributes costs more than the measurement.
	options sync.Map // of series to metric.MeasurementOption
}

// Boundaries of the histograms. Those of models and tokens are the ones of the conventions.
// Waits are longer: people decide within minutes or days.
var (
	modelSeconds = []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	tokenCounts  = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	fastSeconds  = []float64{.00001, .0001, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	waitSeconds  = []float64{.1, .5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 72 * 3600}
)

func newInstruments(m metric.Meter) (*instruments, error) {
	i := &instruments{}
	var problems []error
	histogram := func(to *metric.Float64Histogram, name, unit, about string, bounds []float64) {
		var err error
		*to, err = m.Float64Histogram(name, metric.WithUnit(unit), metric.WithDescription(about), metric.WithExplicitBucketBoundaries(bounds...))
		problems = append(problems, err)
	}
	histogram(&i.modelDuration, MetricModelDuration, "s", "Duration of requests to models.", modelSeconds)
	histogram(&i.tokens, MetricTokens, "{token}", "Tokens of requests to models.", tokenCounts)
	histogram(&i.turnDuration, MetricTurnDuration, "s", "Duration of turns, with the time in which they were parked.", waitSeconds)
	histogram(&i.toolDuration, MetricToolDuration, "s", "Duration of tool calls.", fastSeconds)
	histogram(&i.approvalWait, MetricApprovalWait, "s", "Time from the question to the decision.", waitSeconds)
	histogram(&i.hookDuration, MetricHookDuration, "s", "Duration of hook runs.", fastSeconds)
	histogram(&i.jobDuration, MetricJobDuration, "s", "Duration of attempts of background jobs.", fastSeconds)
	histogram(&i.commitDuration, MetricCommitDuration, "s", "Duration of commits to the store.", fastSeconds)
	var err error
	i.cost, err = m.Float64Counter(MetricCost, metric.WithUnit("USD"), metric.WithDescription("Cost of requests to models, in US dollars."))
	problems = append(problems, err)
	i.denials, err = m.Int64Counter(MetricDenials, metric.WithUnit("{call}"), metric.WithDescription("Tool calls that were denied."))
	return i, errors.Join(append(problems, err)...)
}

// series identifies the attributes of a measurement: three of them, in an order that depends
// on the kind.
type series struct {
	kind    belay.SpanKind
	a, b, c string
	d       string
}

// attrs returns the attributes for the values of a series.
func (i *instruments) attrs(s series, names ...attribute.Key) metric.MeasurementOption { //nolint:ireturn // the library defines it
	if known, ok := i.options.Load(s); ok {
		return known.(metric.MeasurementOption) //nolint:forcetypeassert // nothing else is stored
	}
	var all []attribute.KeyValue
	for n, value := range []string{s.a, s.b, s.c, s.d} {
		if n < len(names) && value != "" {
			all = append(all, names[n].String(value))
		}
	}
	if s.kind == belay.SpanModel && s.d != "cost" {
		all = append(all, operation.String("chat"))
	}
	option := metric.WithAttributeSet(attribute.NewSet(all...))
	i.options.Store(s, option)
	return option
}

// record records the metrics of a span that is over.
func (i *instruments) record(ctx context.Context, s *belay.Span) {
	seconds := max(s.Ended.Sub(s.Began), 0).Seconds() // not negative, although the clocks of two machines may differ

	switch s.Kind { //nolint:exhaustive // a step has no metrics of its own
	case belay.SpanTurn:
		i.turnDuration.Record(ctx, seconds, i.attrs(series{kind: s.Kind, a: s.Name, b: string(s.Turn.Reason)}, agentName, endReason))
	case belay.SpanModel:
		i.recordModel(ctx, s, seconds)
	case belay.SpanTool:
		class := resultFault(s.Result)
		i.toolDuration.Record(ctx, seconds, i.attrs(series{kind: s.Kind, a: s.Name, b: class}, semconv.GenAIToolNameKey, errorType))
		if class == string(belay.ClassDenied) {
			i.denials.Add(ctx, 1, i.attrs(series{kind: s.Kind, a: s.Name}, semconv.GenAIToolNameKey))
		}
	case belay.SpanApproval:
		i.approvalWait.Record(ctx, seconds, i.attrs(series{kind: s.Kind, a: s.Name, b: allowed(s.Approval.Decided.Allow)}, semconv.GenAIToolNameKey, decision))
	case belay.SpanHook:
		r := s.HookRun
		of := series{kind: s.Kind, a: r.Subscription, b: r.Phase, c: r.State.String()}
		if r.Severity > hook.SeverityPass {
			of.d = r.Severity.String()
		}
		i.hookDuration.Record(ctx, seconds, i.attrs(of, subscription, phaseName, hookState, severity))
	case belay.SpanCommit:
		i.commitDuration.Record(ctx, seconds, i.attrs(series{kind: s.Kind, a: faultOf(s.Err)}, errorType))
	case belay.SpanJob:
		of := series{kind: s.Kind, a: s.HookRun.Subscription, b: s.Job.Handler, c: s.HookRun.State.String()}
		i.jobDuration.Record(ctx, seconds, i.attrs(of, subscription, "belay.job.handler", hookState))
	}
}

func (i *instruments) recordModel(ctx context.Context, s *belay.Span, seconds float64) {
	provider, model := splitModel(s.Name)
	of := series{kind: s.Kind, a: provider, b: model, c: faultOf(s.Err)}
	i.modelDuration.Record(ctx, seconds, i.attrs(of, semconv.GenAIProviderNameKey, semconv.GenAIRequestModelKey, errorType))
	r := s.Response
	if r == nil {
		return
	}
	of.c = ""
	of.d = "input"
	names := [...]attribute.Key{semconv.GenAIProviderNameKey, semconv.GenAIRequestModelKey, errorType, semconv.GenAITokenTypeKey}
	i.tokens.Record(ctx, float64(inputTokens(r.Usage)), i.attrs(of, names[:]...))
	of.d = "output"
	i.tokens.Record(ctx, float64(r.Usage.Out), i.attrs(of, names[:]...))
	if r.Usage.Cost > 0 {
		of.d = "cost"
		i.cost.Add(ctx, r.Usage.Cost, i.attrs(of, names[:2]...))
	}
}
