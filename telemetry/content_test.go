package telemetry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/telemetry"
)

// planted is a secret that no redaction would find.
const planted = "violet_umbrella"

// asked approves what is asked about the tool "grave", and denies the rest. Its reasons quote.
type asked struct{}

func (asked) Approve(_ context.Context, q belay.Question) (belay.Decision, error) {
	return belay.Decision{Allow: q.Tool == "grave", By: "ann", Reason: planted}, nil
}

// leaking runs a turn whose every text has the planted secret: prompts, inputs, results, reasons,
// errors, a name of a tool that the model made up, and the error of the model that ends it. It
// returns everything that telemetry has recorded, as JSON.
func leaking(t *testing.T, content bool) (spans tracetest.SpanStubs, all string) {
	t.Helper()
	exporter, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
	traced, err := telemetry.New(&telemetry.Options{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter), sdktrace.WithIDGenerator(telemetry.IDs{})),
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
		Content:        content, Quick: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	input := `{"text":"` + planted + `"}`
	var calls []scripted.Call
	var tools []belay.Tool
	for _, name := range []string{"works", "fails", "panics", "denied", "refused", "grave"} {
		calls = append(calls, scripted.Call{Tool: name, Input: input})
		tools = append(tools, belay.NewRawTool(belay.ToolDeclaration{Name: name, Description: planted}, func(context.Context, *belay.Invocation) (belay.Result, error) {
			switch name {
			case "fails":
				return belay.Result{}, errors.New(planted)
			case "panics":
				panic(planted)
			}
			return belay.Result{Text: planted}, nil
		}, nil))
	}
	calls = append(calls, scripted.Call{Tool: planted, Input: input}, scripted.Call{Tool: "works", Input: `"` + planted + `"`})
	gate := belay.ToolPre.On("gate", func(_ context.Context, c belay.ToolCall) (belay.ToolVerdict, error) {
		switch c.Tool() {
		case "denied":
			return belay.Deny(planted), nil
		case "refused", "grave":
			return belay.Ask(planted), nil
		}
		return belay.Pass, nil
	}, nil)
	broken := belay.ToolPost.On("broken", func(context.Context, belay.ToolResult) (belay.ToolReaction, error) {
		return belay.ToolReaction{}, errors.New(planted)
	}, nil)
	steps := []scripted.Step{{Text: planted, Calls: calls}, {Fault: &scripted.Fault{Kind: belay.ModelInvalid, Message: planted}}}
	agent, err := belay.New(scripted.New(steps, nil), &belay.Options{
		Tools: tools, Hooks: []hook.Subscription{gate, broken}, Approver: asked{}, Extensions: []belay.Extension{traced},
	})
	if err != nil {
		t.Fatal(err)
	}
	if turn, err := agent.Session("s").Turn(t.Context(), planted); err == nil || turn.Reason != belay.EndError || !strings.Contains(err.Error(), planted) {
		t.Fatalf("the turn ended with %+v, %v: want the error of the model", turn, err)
	}
	if err := agent.Close(t.Context()); err != nil {
		t.Error(err)
	}
	var metrics metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &metrics); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(metrics.ScopeMetrics)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.Write(data)
	for _, s := range exporter.GetSpans() {
		fmt.Fprintf(&text, "\n%s %v %v %v %v", s.Name, s.Attributes, s.Events, s.Links, s.Status)
	}
	return exporter.GetSpans(), text.String()
}

// Without the option nothing that was said is in spans and metrics, whatever fails.
//
// SPEC O-01
func TestNoContent(t *testing.T) {
	t.Parallel()
	spans, all := leaking(t, false)
	for line := range strings.Lines(all) {
		if at := strings.Index(line, planted); at >= 0 {
			t.Errorf("content was recorded: …%s", line[max(0, at-120):min(len(line), at+60)])
		}
	}
	names := make(map[string]int)
	for _, s := range spans {
		names[s.Name]++
	}
	for name, n := range map[string]int{"execute_tool": 1, "execute_tool denied": 1, "execute_tool panics": 1, "execute_tool works": 2, "approval grave": 1, "approval refused": 1, "hook broken": 4} {
		if names[name] != n {
			t.Errorf("there are %d spans %q, want %d: %v", names[name], name, n, names)
		}
	}
	for _, metric := range []string{telemetry.MetricDenials, telemetry.MetricToolDuration, telemetry.MetricApprovalWait, telemetry.MetricModelDuration} {
		if !strings.Contains(all, metric) {
			t.Errorf("there is no metric %s", metric)
		}
	}
}

// With the option the same turn has it everywhere.
func TestContent(t *testing.T) {
	t.Parallel()
	spans, _ := leaking(t, true)
	for _, name := range []string{"invoke_agent main", "chat scripted/script", "execute_tool works", "execute_tool denied", "execute_tool " + planted} {
		found := false
		for _, s := range spans {
			found = found || s.Name == name && strings.Contains(fmt.Sprint(s.Attributes), planted)
		}
		if !found {
			t.Errorf("no span %q has content", name)
		}
	}
	for _, s := range spans {
		if s.EndTime.Before(s.StartTime) || s.EndTime.Sub(s.StartTime) > time.Minute {
			t.Errorf("%q took from %s to %s", s.Name, s.StartTime, s.EndTime)
		}
	}
}

// Content has no secret that only the names of fields show, wherever a call is recorded.
//
// SPEC O-01
func TestContentOfCallsHasNoSecrets(t *testing.T) {
	t.Parallel()
	exporter := tracetest.NewInMemoryExporter()
	traced, err := telemetry.New(&telemetry.Options{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)), Content: true})
	if err != nil {
		t.Fatal(err)
	}
	tool := belay.NewRawTool(belay.ToolDeclaration{Name: "deploy", Description: "for tests"}, func(context.Context, *belay.Invocation) (belay.Result, error) {
		return belay.Result{Text: "done"}, nil
	}, nil)
	input := `{"path":"a.txt","passwords":["` + planted + `"],"credentials":{"user":"` + planted + `"},"argv":["--token",["` + planted + `"]]}`
	agent, err := belay.New(scripted.New([]scripted.Step{{Calls: []scripted.Call{{Tool: "deploy", Input: input}}}, {Text: "done"}}, nil), &belay.Options{
		Tools: []belay.Tool{tool}, Extensions: []belay.Extension{traced},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agent.Session("s").Turn(t.Context(), "a task"); err != nil {
		t.Fatal(err)
	}
	if err := agent.Close(t.Context()); err != nil {
		t.Error(err)
	}
	recorded := 0
	for _, s := range exporter.GetSpans() {
		for _, a := range s.Attributes {
			text := a.Value.String()
			if strings.Contains(text, planted) {
				t.Errorf("%s of span %q has a secret: %s", a.Key, s.Name, text)
			}
			recorded += strings.Count(text, `{"path":"a.txt",`)
		}
	}
	if recorded != 2 { // in the response of the model, and in the call
		t.Errorf("the call is recorded %d times, want 2", recorded)
	}
}

// A name that the model made up is content, also if the turn ends before the call is checked.
//
// SPEC O-01
func TestNoMadeUpNamesOfUncheckedCalls(t *testing.T) {
	t.Parallel()
	for _, content := range []bool{false, true} {
		exporter, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
		traced, err := telemetry.New(&telemetry.Options{
			TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter), sdktrace.WithIDGenerator(telemetry.IDs{})),
			MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
			Content:        content, Quick: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		known := belay.NewRawTool(belay.ToolDeclaration{Name: "real", Description: "Is real."}, func(context.Context, *belay.Invocation) (belay.Result, error) {
			return belay.Result{}, errors.New("it must not run")
		}, nil)
		model := scripted.New([]scripted.Step{{Calls: []scripted.Call{{Tool: planted, Input: `{}`}, {Tool: "real", Input: `{}`}}, Stop: belay.StopRefusal}, {Text: "done"}}, nil)
		agent, err := belay.New(model, &belay.Options{Tools: []belay.Tool{known}, Extensions: []belay.Extension{traced}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := agent.Session("s").Turn(t.Context(), "a task"); err != nil {
			t.Fatal(err)
		}
		if err := agent.Close(t.Context()); err != nil {
			t.Error(err)
		}
		var metrics metricdata.ResourceMetrics
		if err := reader.Collect(t.Context(), &metrics); err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(metrics.ScopeMetrics)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), planted) {
			t.Errorf("the metrics have the name: %s", data)
		}
		names := make(map[string]int)
		for _, s := range exporter.GetSpans() {
			names[s.Name]++
			if text := fmt.Sprint(s.Name, s.Attributes); !content && strings.Contains(text, planted) {
				t.Errorf("a span has the name: %s", text)
			}
		}
		want := "execute_tool"
		if content {
			want += " " + planted
		}
		if names[want] != 1 || names["execute_tool real"] != 1 {
			t.Errorf("content %v: the spans are %v; want one %q and one of the tool", content, names, want)
		}
	}
}
