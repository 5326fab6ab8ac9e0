package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/telemetry"
)

// attributesOf returns the attributes of a span as texts.
func attributesOf(s *tracetest.SpanStub) map[string]string {
	all := make(map[string]string)
	for _, a := range s.Attributes {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

// The ids of the spans, of the log and of the link to the console are those of the records in the
// store: of the session, the turn, the call, the runs of hooks, the approval and the job.
//
// SPEC O-04
func TestSpansLogsAndRecordsHaveTheSameIDs(t *testing.T) {
	t.Parallel()
	spans, log, store := tracetest.NewInMemoryExporter(), &bytes.Buffer{}, openStore(t, filepath.Join(t.TempDir(), "belay.db"))
	made, err := telemetry.New(&telemetry.Options{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithIDGenerator(telemetry.IDs{})),
		MeterProvider:  metricnoop.NewMeterProvider(), Quick: true, URL: "https://belay.example",
	})
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(telemetry.LogHandler(slog.NewJSONHandler(log, nil), nil))
	tool := belay.NewTool("grave", "is grave", func(ctx context.Context, _ struct{}) (string, error) {
		logger.InfoContext(ctx, "the tool runs")
		return "done", nil
	}, nil)
	asks := belay.ToolPre.On("asks", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return belay.Ask("look first"), nil }, nil)
	later := belay.TurnPostTurn.On("later", func(context.Context, belay.TurnEnded) (belay.Note, error) { return belay.Note{}, nil }, &hook.Options{Execution: hook.Background})
	model := scripted.New([]scripted.Step{{Calls: []scripted.Call{{Tool: "grave"}}}, {Text: "done"}}, nil)
	agent, err := belay.New(model, &belay.Options{Tools: []belay.Tool{tool}, Hooks: []hook.Subscription{asks, later}, Approver: asked{}, Store: store, Extensions: []belay.Extension{made}, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	turn, err := agent.Session("s").Turn(t.Context(), "a task")
	if err != nil {
		t.Fatal(err)
	}
	working, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- agent.Hooks().Work(working) }() // ends with working
	for _, err := range store.Journal().(hook.FollowJournal).Follow(t.Context(), hook.Filter{Subscription: "later", States: []hook.State{hook.Completed}, After: -1}) {
		if err != nil {
			t.Fatal(err)
		}
		break // the job is over
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := agent.Close(t.Context()); err != nil {
		t.Error(err)
	}

	runs := make(map[string]hook.Run)
	for r, err := range store.Journal().(hook.ListJournal).List(t.Context(), hook.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		runs[r.ID] = r
	}
	approvals := make(map[string]belay.Approval)
	for a, err := range store.Approvals(t.Context(), belay.ApprovalFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		approvals[a.ID] = a
	}
	trace, call := telemetry.TraceID("s", turn.ID), ""
	names := make(map[string]int)
	all := spans.GetSpans()
	for i := range all {
		s := &all[i]
		names[s.Name]++
		has := attributesOf(s)
		if s.SpanContext.TraceID() != trace || has["gen_ai.conversation.id"] != "s" || has["belay.turn"] != turn.ID {
			t.Errorf("%q is in trace %s of session %q and turn %q, want %s of s and %s", s.Name, s.SpanContext.TraceID(), has["gen_ai.conversation.id"], has["belay.turn"], trace, turn.ID)
		}
		if id, ok := has["belay.run"]; ok {
			if r := runs[id]; r.Scope.Turn != turn.ID || s.Name != "hook "+r.Subscription && s.Name != "job "+r.Subscription {
				t.Errorf("%q has the run %q, and the journal has %+v", s.Name, id, r)
			}
		}
		switch s.Name {
		case "invoke_agent main":
			if want := "https://belay.example/sessions/s?turn=" + turn.ID; has["belay.url"] != want {
				t.Errorf("the turn has the link %q, want %q", has["belay.url"], want)
			}
		case "execute_tool grave":
			call = s.SpanContext.SpanID().String()
		case "approval grave":
			if a := approvals[has["belay.approval"]]; a.ID == "" || a.Turn != turn.ID || a.Call != has["gen_ai.tool.call.id"] || a.Decided.By != "ann" {
				t.Errorf("the approval is %v, and the store has %+v", has, approvals)
			}
		case "job later":
			if r := runs[has["belay.run"]]; has["belay.job"] == "" || r.Job != has["belay.job"] {
				t.Errorf("the job is %v, and its record is %+v", has, r)
			}
		}
	}
	for _, name := range []string{"invoke_agent main", "execute_tool grave", "approval grave", "hook asks", "job later"} {
		if names[name] != 1 {
			t.Errorf("there are %d spans %q, want one: %v", names[name], name, names)
		}
	}
	var line struct {
		Message string `json:"msg"`
		Trace   string `json:"trace_id"`
		Span    string `json:"span_id"`
	}
	want := line
	want.Message, want.Trace, want.Span = "the tool runs", trace.String(), call
	if err := json.Unmarshal(log.Bytes(), &line); err != nil {
		t.Fatalf("the log is %q: %v", log, err)
	}
	if diff := cmp.Diff(want, line); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}
