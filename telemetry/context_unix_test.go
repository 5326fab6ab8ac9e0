//go:build unix

package telemetry_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/tracecontext"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/telemetry"
)

// traced makes an agent that calls the tool "look" once, and the exporter of its spans.
func traced(t *testing.T, look func(ctx context.Context), hooks []hook.Subscription, more ...sdktrace.TracerProviderOption) (*belay.Agent, *tracetest.InMemoryExporter, *sdktrace.TracerProvider) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(append(more, sdktrace.WithSyncer(spans), sdktrace.WithIDGenerator(telemetry.IDs{}))...)
	made, err := telemetry.New(&telemetry.Options{TracerProvider: provider, MeterProvider: metricnoop.NewMeterProvider()})
	if err != nil {
		t.Fatal(err)
	}
	tool := belay.NewTool("look", "looks", func(ctx context.Context, _ struct{}) (string, error) { look(ctx); return "seen", nil }, nil)
	model := scripted.New([]scripted.Step{{Calls: []scripted.Call{{Tool: "look"}}}, {Text: "done"}}, nil)
	agent, err := belay.New(model, &belay.Options{Tools: []belay.Tool{tool}, Hooks: hooks, Extensions: []belay.Extension{made}})
	if err != nil {
		t.Fatal(err)
	}
	return agent, spans, provider
}

func take(ctx context.Context, t *testing.T, agent *belay.Agent) *belay.Turn {
	t.Helper()
	turn, err := agent.Session("s").Turn(ctx, "hello")
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Close(context.WithoutCancel(ctx)); err != nil {
		t.Error(err)
	}
	return turn
}

func spanNamed(t *testing.T, spans *tracetest.InMemoryExporter, name string) tracetest.SpanStub {
	t.Helper()
	for _, s := range spans.GetSpans() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no span %q", name)
	return tracetest.SpanStub{}
}

// traceparent returns the trace context of a span.
func traceparent(sc trace.SpanContext) string {
	return "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + "-" + sc.TraceFlags().String()
}

// A command hook gets the trace context in its environment and its envelope, and a webhook
// gets it as a header. A tool gets it in its context, also for OpenTelemetry.
//
// SPEC O-01
func TestTraceContextReachesHooksAndTools(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	command, err := declare.Command(belay.ToolPre, "command", []string{"sh", "-c", `printf %s "$TRACEPARENT" > ` + dir + `/variable; cat > ` + dir + `/envelope`}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var header string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		header = r.Header.Get("Traceparent")
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	webhook, err := declare.Webhook(belay.ToolPost, "webhook", declare.Endpoint{URL: server.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var inTool string
	var ofTool trace.SpanContext
	agent, spans, _ := traced(t, func(ctx context.Context) {
		inTool, ofTool = tracecontext.Of(ctx), trace.SpanContextFromContext(ctx)
	}, []hook.Subscription{command, webhook})
	turn := take(t.Context(), t, agent)

	step, call := spanNamed(t, spans, "step 1").SpanContext, spanNamed(t, spans, "execute_tool look").SpanContext
	if step.TraceID() != telemetry.TraceID("s", turn.ID) {
		t.Errorf("the trace is %s", step.TraceID())
	}
	variable, err := os.ReadFile(filepath.Join(dir, "variable"))
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := os.ReadFile(filepath.Join(dir, "envelope"))
	if err != nil {
		t.Fatal(err)
	}
	var in struct {
		Traceparent string `json:"traceparent"`
	}
	if err := json.Unmarshal(envelope, &in); err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]string{"TRACEPARENT": string(variable), "the envelope": in.Traceparent, "the header": header} {
		if got != traceparent(step) {
			t.Errorf("%s has %q, want the step %q", what, got, traceparent(step))
		}
	}
	if inTool != traceparent(call) || !ofTool.Equal(call.WithRemote(false)) && ofTool.SpanID() != call.SpanID() {
		t.Errorf("the tool has %q and %s, want the call %q", inTool, ofTool.SpanID(), traceparent(call))
	}
}

// Without a trace nobody gets a trace context.
func TestNoTraceNoContext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	command, err := declare.Command(belay.ToolPre, "command", []string{"sh", "-c", `env > ` + dir + `/env; cat > ` + dir + `/envelope`}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tool := belay.NewTool("look", "looks", func(context.Context, struct{}) (string, error) { return "seen", nil }, nil)
	agent, err := belay.New(scripted.New([]scripted.Step{{Calls: []scripted.Call{{Tool: "look"}}}, {Text: "done"}}, nil), &belay.Options{Tools: []belay.Tool{tool}, Hooks: []hook.Subscription{command}})
	if err != nil {
		t.Fatal(err)
	}
	take(t.Context(), t, agent)
	for _, name := range []string{"env", "envelope"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || strings.Contains(strings.ToLower(string(text)), "traceparent") {
			t.Errorf("%s: %v, %s", name, err, text)
		}
	}
}

// A turn and the span of its caller are linked in both directions, and are two traces.
func TestCallerAndTurnAreLinked(t *testing.T) {
	t.Parallel()
	agent, spans, provider := traced(t, func(context.Context) {}, nil)
	ctx, request := provider.Tracer("test").Start(t.Context(), "request")
	take(ctx, t, agent)
	request.End()
	caller, turn := spanNamed(t, spans, "request"), spanNamed(t, spans, "invoke_agent main")
	if caller.SpanContext.TraceID() == turn.SpanContext.TraceID() || turn.Parent.IsValid() {
		t.Error("the turn is part of the trace of its caller")
	}
	if len(turn.Links) != 1 || turn.Links[0].SpanContext.SpanID() != caller.SpanContext.SpanID() {
		t.Errorf("the links of the turn are %v", turn.Links)
	}
	if len(caller.Links) != 1 || caller.Links[0].SpanContext.SpanID() != turn.SpanContext.SpanID() {
		t.Errorf("the links of the caller are %v", caller.Links)
	}
}

// A turn that is not sampled exports nothing, and says so to what it calls.
func TestTurnThatIsNotSampled(t *testing.T) {
	t.Parallel()
	got := ""
	agent, spans, _ := traced(t, func(ctx context.Context) { got = tracecontext.Of(ctx) }, nil, sdktrace.WithSampler(sdktrace.NeverSample()))
	turn := take(t.Context(), t, agent)
	if n := len(spans.GetSpans()); n != 0 {
		t.Errorf("%d spans were exported", n)
	}
	if !strings.HasPrefix(got, "00-"+telemetry.TraceID("s", turn.ID).String()) || !strings.HasSuffix(got, "-00") {
		t.Errorf("the tool has the trace context %q", got)
	}
}

// The attempts of a background job are below the span of their turn.
func TestJobIsInTheTraceOfItsTurn(t *testing.T) {
	t.Parallel()
	later := belay.TurnPostTurn.On("later", func(context.Context, belay.TurnEnded) (belay.Note, error) {
		return belay.Note{}, nil
	}, &hook.Options{Execution: hook.Background})
	agent, spans, _ := traced(t, func(context.Context) {}, []hook.Subscription{later})
	take(t.Context(), t, agent)
	job, turn := spanNamed(t, spans, "job later"), spanNamed(t, spans, "invoke_agent main")
	if job.SpanContext.TraceID() != turn.SpanContext.TraceID() || job.Parent.SpanID() != turn.SpanContext.SpanID() {
		t.Errorf("the job is in %s below %s, want %s below %s", job.SpanContext.TraceID(), job.Parent.SpanID(), turn.SpanContext.TraceID(), turn.SpanContext.SpanID())
	}
}
