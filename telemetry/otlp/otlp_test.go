package otlp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/otlptest"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/telemetry"
	"github.com/belay-run/belay/telemetry/otlp"
)

// open makes providers for variables, and a Telemetry that uses them. They are shut down when
// the test calls the returned function.
func open(t *testing.T, scraped bool, env ...string) (*telemetry.Telemetry, *otlp.Providers, func()) {
	t.Helper()
	p, err := otlp.Open(&otlp.Options{Environ: env, Version: "v1", Scraped: scraped})
	if err != nil {
		t.Fatal(err)
	}
	made, err := telemetry.New(&telemetry.Options{TracerProvider: p.Tracer, MeterProvider: p.Meter, URL: "https://belay.example"})
	if err != nil {
		t.Fatal(err)
	}
	return made, p, func() {
		if err := p.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

// takeTurn runs a turn with a denied call and one that runs.
func takeTurn(t *testing.T, made *telemetry.Telemetry, logger *slog.Logger) *belay.Turn {
	t.Helper()
	model := scripted.New([]scripted.Step{{Calls: []scripted.Call{{Tool: "echo"}, {Tool: "remove"}}}, {Text: "done"}}, nil)
	run := func(ctx context.Context, _ struct{}) (string, error) {
		if logger != nil {
			logger.WarnContext(ctx, "the tool runs", "token", "sk-proj-0123456789abcdef")
		}
		return "ran", nil
	}
	deny := belay.ToolPre.On("no-remove", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
		return belay.Deny("nothing is removed"), nil
	}, &hook.Options{Match: hook.Match{Tools: []string{"remove"}}})
	agent, err := belay.New(model, &belay.Options{
		Tools: []belay.Tool{belay.NewTool("echo", "runs", run, nil), belay.NewTool("remove", "runs", run, nil)}, Hooks: []hook.Subscription{deny}, Extensions: []belay.Extension{made},
	})
	if err != nil {
		t.Fatal(err)
	}
	turn, err := agent.Session("s").Turn(t.Context(), "hello")
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return turn
}

// SPEC O-01
func TestTurnIsSent(t *testing.T) {
	t.Parallel()
	collector := otlptest.New(t, nil)
	made, p, shutdown := open(t, false, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_EXPORTER_OTLP_HEADERS=x-key=a%20b", "OTEL_SERVICE_NAME=mine", "OTEL_LOGS_EXPORTER=otlp")
	turn := takeTurn(t, made, slog.New(telemetry.LogHandler(slog.DiscardHandler, p.Logger)))
	shutdown()

	names := collector.Tree(telemetry.TraceID("s", turn.ID).String())
	want := map[string]int{"invoke_agent main": 1, "step 1": 1, "step 2": 1, "chat scripted/script": 2, "execute_tool echo": 1, "execute_tool remove": 1, "hook no-remove": 1}
	for name, n := range want {
		if names[name] != n {
			t.Errorf("there are %d spans %q, want %d: %v", names[name], name, n, names)
		}
	}
	if got := collector.Header.Get("X-Key"); got != "a b" {
		t.Errorf("the header is %q", got)
	}
	if got := otlptest.Attribute(collector.Resources[0].GetAttributes(), "service.name"); got != "mine" {
		t.Errorf("the service is %q", got)
	}
	for name, attributes := range map[string]map[string]string{
		"invoke_agent main": {
			"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "main", "gen_ai.conversation.id": "s", "belay.turn": turn.ID, "belay.end_reason": "end_turn",
			"belay.url": "https://belay.example/sessions/s?turn=" + turn.ID,
		},
		"execute_tool remove": {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "remove", "belay.result.class": "denied", "error.type": "denied", "belay.step": "1"},
		"hook no-remove":      {"belay.phase": "tool.pre", "belay.subscription": "no-remove", "belay.severity": "deny"},
		"step 2":              {"belay.turn": turn.ID, "belay.step": "2"},
	} {
		span := collector.Named(name)
		for key, value := range attributes {
			if got := otlptest.Attribute(span.GetAttributes(), key); got != value {
				t.Errorf("%s has %s=%q, want %q", name, key, got, value)
			}
		}
	}
	if got := collector.Metrics["belay.denials"].GetSum().GetDataPoints(); len(got) != 1 || got[0].GetAsInt() != 1 {
		t.Errorf("the denials are %v", got)
	}
	if len(collector.Logs) != 1 || !bytes.Equal(collector.Logs[0].GetSpanId(), collector.Named("execute_tool echo").GetSpanId()) {
		t.Errorf("the log record is not of the call: %v", collector.Logs)
	} else if got := otlptest.Attribute(collector.Logs[0].GetAttributes(), "token"); strings.Contains(got, "sk-") {
		t.Errorf("the log record has a secret: %q", got)
	}
}

// A collector that is busy gets the same request again.
func TestBusyCollectorIsAskedAgain(t *testing.T) {
	t.Parallel()
	var refused atomic.Bool
	collector := otlptest.New(t, func(w http.ResponseWriter, _ *http.Request) bool {
		if refused.Swap(true) {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	made, _, shutdown := open(t, false, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+collector.URL+"/v1/traces", "OTEL_METRICS_EXPORTER=none")
	takeTurn(t, made, nil)
	shutdown()
	if len(collector.Spans) == 0 || len(collector.Metrics) > 0 {
		t.Errorf("the collector got %d spans and %d metrics", len(collector.Spans), len(collector.Metrics))
	}
}

// Without variables, the providers do nothing: a turn then has no spans to make, as without the
// package. The global providers of OpenTelemetry are not used in their place.
//
// SPEC O-01
func TestNothingIsMadeWithoutVariables(t *testing.T) {
	t.Parallel()
	none := func(p *otlp.Providers) (spans, metrics bool) {
		_, spans = p.Tracer.(tracenoop.TracerProvider)
		_, metrics = p.Meter.(metricnoop.MeterProvider)
		return spans, metrics
	}
	for _, env := range [][]string{{}, {"HOME=/x", "OTEL_SERVICE_NAME=x"}, {"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318", "OTEL_SDK_DISABLED=true"}, {"OTEL_TRACES_EXPORTER=none"}, {"OTEL_METRICS_EXPORTER=prometheus"}} {
		p, err := otlp.Open(&otlp.Options{Environ: env})
		if err != nil || p.Logger != nil || otlp.IsSet(env) {
			t.Fatalf("%q makes %+v, %v", env, p, err)
		}
		if spans, metrics := none(p); !spans || !metrics {
			t.Errorf("%q makes %T and %T", env, p.Tracer, p.Meter)
		}
	}
	scraped, err := otlp.Open(&otlp.Options{Environ: []string{}, Scraped: true})
	if err != nil {
		t.Fatal(err)
	}
	if spans, metrics := none(scraped); !spans || metrics {
		t.Errorf("a page of metrics alone makes %T and %T", scraped.Tracer, scraped.Meter)
	}
	env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318"}
	p, err := otlp.Open(&otlp.Options{Environ: env})
	if err != nil || p.Logger != nil || !otlp.IsSet(env) {
		t.Fatalf("an endpoint makes %+v, %v: it should make no logger", p, err)
	}
	if spans, metrics := none(p); spans || metrics {
		t.Errorf("an endpoint makes %T and %T", p.Tracer, p.Meter)
	}
}

func TestWrongVariablesAreNamed(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]string{
		"OTEL_TRACES_EXPORTER=zipkin":                     "OTEL_TRACES_EXPORTER",
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc":         "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
		"OTEL_EXPORTER_OTLP_TIMEOUT=10s":                  "OTEL_EXPORTER_OTLP_TIMEOUT",
		"OTEL_EXPORTER_OTLP_COMPRESSION=zstd":             "OTEL_EXPORTER_OTLP_COMPRESSION",
		"OTEL_EXPORTER_OTLP_HEADERS=hush":                 "OTEL_EXPORTER_OTLP_HEADERS",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=hush:4318":    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
		"OTEL_EXPORTER_OTLP_CERTIFICATE=/none/at/all.pem": "OTEL_EXPORTER_OTLP_CERTIFICATE",
		"OTEL_RESOURCE_ATTRIBUTES=hush":                   "OTEL_RESOURCE_ATTRIBUTES",
	} {
		_, err := otlp.Open(&otlp.Options{Environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318", variable}})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", variable, err)
		}
	}
}

// A flush ends with its context, even if the collector never answers.
func TestShutdownIsBounded(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	defer silent.Close()
	defer close(over)
	p, err := otlp.Open(&otlp.Options{Environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + silent.URL, "OTEL_EXPORTER_OTLP_TIMEOUT=600000"}})
	if err != nil {
		t.Fatal(err)
	}
	made, err := telemetry.New(&telemetry.Options{TracerProvider: p.Tracer, MeterProvider: p.Meter})
	if err != nil {
		t.Fatal(err)
	}
	takeTurn(t, made, nil)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("late"))
	defer cancel()
	if err := p.Shutdown(ctx); err == nil {
		t.Error("nothing was sent, and Shutdown says nothing")
	}
}

// queue is a store with a queue for the metrics.
type queue struct{ belay.TurnStore }

func (queue) Load(context.Context) (belay.Load, error) {
	return belay.Load{Waiting: 2, Parked: 1, OldestAge: time.Second}, nil
}

func (queue) Changes(context.Context, string) iter.Seq2[belay.SessionInfo, error] { return nil }

// everyMetric records each metric once.
func everyMetric(t *testing.T, made *telemetry.Telemetry) {
	t.Helper()
	takeTurn(t, made, nil)
	began := time.Now()
	decided := &belay.Approval{Decided: &belay.Decision{Allow: true}}
	made.EndSpan(t.Context(), &belay.Span{Kind: belay.SpanApproval, Name: "shell", Approval: decided, Began: began, Ended: began.Add(time.Minute)})
	made.EndSpan(t.Context(), &belay.Span{Kind: belay.SpanJob, Job: &hook.Job{}, HookRun: &hook.Run{State: hook.Completed}, Began: began, Ended: began})
	made.EndSpan(t.Context(), &belay.Span{Kind: belay.SpanModel, Name: "a/b", Response: &belay.Response{Usage: belay.Usage{In: 1, Cost: .5}}, Began: began, Ended: began})
	if err := made.ObserveQueue(queue{}); err != nil {
		t.Fatal(err)
	}
	lag, err := made.StreamLag()
	if err != nil {
		t.Fatal(err)
	}
	lag(time.Millisecond)
}

// scrape reads the page of metrics as Prometheus does. It returns the names of the values.
func scrape(t *testing.T, p *otlp.Providers) (page string, names map[string]bool) {
	t.Helper()
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	page, names = w.Body.String(), make(map[string]bool)
	line := regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{([a-zA-Z_][a-zA-Z0-9_]*="([^"\\\n]|\\["\\n])*",?)*\})? (\+Inf|[-+0-9.e]+)$`)
	for text := range strings.Lines(page) {
		text = strings.TrimSuffix(text, "\n")
		if strings.HasPrefix(text, "# HELP ") || strings.HasPrefix(text, "# TYPE ") {
			continue
		}
		found := line.FindStringSubmatch(text)
		if found == nil {
			t.Errorf("the line is not in the text format: %q", text)
			continue
		}
		names[found[1]] = true
	}
	return page, names
}

func TestMetricsPage(t *testing.T) {
	t.Parallel()
	made, p, shutdown := open(t, true)
	defer shutdown()
	everyMetric(t, made)
	page, _ := scrape(t, p)
	for _, want := range []string{
		`belay_denials_total{gen_ai_tool_name="remove"} 1` + "\n", `belay_queue_depth{belay_state="waiting"} 2` + "\n", "belay_queue_age_seconds 1\n",
		`belay_approval_wait_seconds_bucket{belay_decision="allow",gen_ai_tool_name="shell",le="15"} 0` + "\n",
		`belay_approval_wait_seconds_bucket{belay_decision="allow",gen_ai_tool_name="shell",le="60"} 1` + "\n",
		`belay_approval_wait_seconds_bucket{belay_decision="allow",gen_ai_tool_name="shell",le="+Inf"} 1` + "\n",
		`belay_cost_USD_total{gen_ai_provider_name="a",gen_ai_request_model="b"} 0.5` + "\n", "# TYPE belay_queue_depth gauge\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// Every metric that the dashboard names exists, and the dashboard shows every metric.
func TestDashboardNamesMetricsThatExist(t *testing.T) {
	t.Parallel()
	made, p, shutdown := open(t, true)
	defer shutdown()
	everyMetric(t, made)
	_, exist := scrape(t, p)
	data, err := os.ReadFile("../../docs/dashboards/belay.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(data, &dashboard); err != nil {
		t.Fatal(err)
	}
	metric := regexp.MustCompile(`\b(?:belay|gen_ai_client)_[a-zA-Z_]+\b(\{)?`)
	shown := make(map[string]bool)
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			for _, found := range metric.FindAllString(target.Expr, -1) {
				name, selects := strings.CutSuffix(found, "{")
				if !selects {
					continue // a label
				}
				if !exist[name] {
					t.Errorf("panel %q: there is no metric %s", panel.Title, name)
				}
				shown[family(name)] = true
			}
		}
	}
	for name := range exist {
		if !shown[family(name)] {
			t.Errorf("no panel shows %s", name)
		}
	}
	if len(dashboard.Panels) < 10 {
		t.Errorf("the dashboard has %d panels", len(dashboard.Panels))
	}
}

// family returns the name of a histogram without the suffix of its value.
func family(name string) string {
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}
