package telemetry_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/sqlite"
	"github.com/belay-run/belay/subagent"
	"github.com/belay-run/belay/telemetry"
)

// process is what a process would have: a provider, an agent and the spans that it has exported.
type process struct {
	*belay.Agent

	spans *tracetest.InMemoryExporter
}

// newProcess makes an agent with a subagent on a store. Its spans are exported when they end.
func newProcess(t *testing.T, store belay.Store, ids sdktrace.IDGenerator, main, child []scripted.Step) *process {
	t.Helper()
	p := &process{spans: tracetest.NewInMemoryExporter()}
	opts := []sdktrace.TracerProviderOption{sdktrace.WithSyncer(p.spans)}
	if ids != nil {
		opts = append(opts, sdktrace.WithIDGenerator(ids))
	}
	extension, err := telemetry.New(&telemetry.Options{TracerProvider: sdktrace.NewTracerProvider(opts...)})
	if err != nil {
		t.Fatal(err)
	}
	tool := belay.NewTool("deploy", "deploys", func(context.Context, struct{}) (string, error) { return "deployed", nil }, nil)
	asks := belay.ToolPre.On("ask-deploy", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
		return belay.Ask("it changes production"), nil
	}, &hook.Options{Match: hook.Match{Tools: []string{"deploy"}}})
	subagents, err := subagent.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = subagents.Add(subagent.Subagent{
		Name: "deployer", Description: "Deploys.",
		Factory: subagent.Agent(scripted.New(child, nil), &belay.Options{
			Name: "deployer", Tools: []belay.Tool{tool}, Hooks: []hook.Subscription{asks}, Store: store, OnAsk: belay.AskPark, Extensions: []belay.Extension{extension},
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Agent, err = belay.New(scripted.New(main, nil), &belay.Options{Store: store, OnAsk: belay.AskPark, Extensions: []belay.Extension{subagents, extension}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func openStore(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// interrupted runs a turn with two agents on one store, as two processes would: the first parks it
// with an approval of its subagent, and the second finishes it. It returns the spans of both. The
// tests of cmd/belay do it with processes, of which one is killed.
func interrupted(t *testing.T, ids sdktrace.IDGenerator) (spans tracetest.SpanStubs, turn string) {
	t.Helper()
	store := openStore(t, filepath.Join(t.TempDir(), "belay.db"))
	deploys := scripted.Step{Calls: []scripted.Call{{Tool: "deploy", Input: `{}`}}}
	invokes := scripted.Step{Calls: []scripted.Call{{Tool: "invoke_subagent", Input: `{"name": "deployer", "prompt": "Deploy."}`}}}

	first := newProcess(t, store, ids, []scripted.Step{invokes}, []scripted.Step{deploys})
	parked, err := first.Session("s").Turn(t.Context(), "deploy it")
	if err != nil || parked.Reason != belay.EndParked || len(parked.Waits) != 1 {
		t.Fatalf("the turn is not parked: %+v %v", parked, err)
	}
	wait := parked.Waits[0].Approval
	if _, err := first.Decide(t.Context(), belay.Decision{Approval: wait.ID, Hash: wait.Hash, Allow: true, By: "ann"}); err != nil {
		t.Fatal(err)
	}

	second := newProcess(t, store, ids, []scripted.Step{{Text: "all done"}}, []scripted.Step{{Text: "deployed"}})
	done, err := belay.Await(second.Session("s").Resume(t.Context()))
	if err != nil || done.Reason != belay.EndTurn || done.Text != "all done" {
		t.Fatalf("the turn did not end: %+v %v", done, err)
	}
	for _, p := range []*process{first, second} {
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		spans = append(spans, p.spans.GetSpans()...)
	}
	return spans, done.ID
}

// SPEC O-01
func TestInterruptedTurnIsOneTree(t *testing.T) {
	t.Parallel()
	spans, turn := interrupted(t, telemetry.IDs{})
	want := telemetry.TraceID("s", turn)
	byID := make(map[trace.SpanID]tracetest.SpanStub)
	names := make(map[string]int)
	for _, s := range spans {
		if got := s.SpanContext.TraceID(); got != want {
			t.Errorf("span %q is in trace %s, and not in the turn's, %s", s.Name, got, want)
		}
		if other, twice := byID[s.SpanContext.SpanID()]; twice {
			t.Errorf("the spans %q and %q have the same id", s.Name, other.Name)
		}
		byID[s.SpanContext.SpanID()] = s
		names[strings.Fields(s.Name)[0]+" "+lastWord(s.Name)]++
	}
	roots := 0
	for _, s := range spans {
		if !s.Parent.IsValid() {
			roots++
			if s.Name != "invoke_agent main" {
				t.Errorf("the root is %q", s.Name)
			}
			continue
		}
		parent, ok := byID[s.Parent.SpanID()]
		if !ok {
			t.Errorf("the parent of %q, %s, was not exported", s.Name, s.Parent.SpanID())
		}
		if !strings.HasPrefix(parent.Name, "invoke_agent") && s.StartTime.Before(parent.StartTime) { // a resumed turn begins when its message was stored
			t.Errorf("%q begins at %s, before its parent %q at %s", s.Name, s.StartTime, parent.Name, parent.StartTime)
		}
	}
	if roots != 1 {
		t.Errorf("the trace has %d roots", roots)
	}
	for name, n := range map[string]int{
		"invoke_agent main": 1, "invoke_agent deployer": 1, "execute_tool invoke_subagent": 1, "execute_tool deploy": 1,
		"approval deploy": 1, "hook ask-deploy": 1, "chat scripted/script": 4,
	} {
		if names[name] != n {
			t.Errorf("there are %d spans %q, want %d: %v", names[name], name, n, names)
		}
	}
	if names["run run"] != 4 { //nolint:dupword // the kind and the name
		t.Errorf("the parts of the turn have %d spans, want 4: one for each turn and process", names["run run"]) //nolint:dupword // the kind and the name
	}
}

// Without the ids of the package the spans have the trace in common.
func TestInterruptedTurnWithOtherIDsIsOneTrace(t *testing.T) {
	t.Parallel()
	spans, turn := interrupted(t, nil)
	for _, s := range spans {
		if got, want := s.SpanContext.TraceID(), telemetry.TraceID("s", turn); got != want {
			t.Errorf("span %q is in trace %s, and not in the turn's, %s", s.Name, got, want)
		}
	}
}

func lastWord(name string) string {
	words := strings.Fields(name)
	return words[len(words)-1]
}
