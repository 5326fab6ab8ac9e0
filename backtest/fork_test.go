package backtest_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/backtest"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// What a fork has copied is replayed once, in the session where it happened: the approvals are
// there. The copied calls still show the defaults of tools.
//
// SPEC O-02
func TestForksAreReplayedFromTheirFork(t *testing.T) {
	t.Parallel()
	type input struct {
		Path    string `json:"path"`
		Deep    int    `json:"deep" default:"3"`
		Careful *bool  `json:"careful,omitempty"`
	}
	walk := belay.NewTool("walk", "Walks.", func(context.Context, input) (string, error) { return "there", nil }, nil)
	moves := func(to string) hook.Subscription {
		return belay.ToolPre.On("move", func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
			if string(call.Input()) == `{"path":"hall","deep":3}` || string(call.Input()) == `{"path":"hall"}` {
				return belay.Ask("look first"), nil
			}
			return belay.ToolVerdict{Input: []byte(to)}, nil
		}, &hook.Options{Capabilities: hook.CanRewriteInput | hook.CanAsk})
	}
	store := memstore.New(nil)
	agent, err := belay.New(scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "walk", Input: `{"path":"hall"}`}}},
		{Text: "done"},
		{Calls: []scripted.Call{{Tool: "walk", Input: `{"path":"drafts"}`}}},
		{Text: "done"},
	}, nil), &belay.Options{Store: store, Tools: []belay.Tool{walk}, Hooks: []hook.Subscription{moves(`{"path":"attic","deep":3,"careful":true}`)}, Approver: person{true}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agent.Session("s").Turn(t.Context(), "a task"); err != nil {
		t.Fatal(err)
	}
	fork, err := agent.Session("s").Fork(t.Context(), "fork", 4)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fork.Turn(t.Context(), "another task"); err != nil {
		t.Fatal(err)
	}
	if err := agent.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	report := run(t, store, &backtest.Policy{Hooks: []hook.Subscription{moves(`{"path":"attic"}`)}}, nil)
	want := []string{`fork call walk{"path":"drafts"}: allowed as {"path":"attic","deep":3,"careful":true} -> allowed as {"path":"attic"}`}
	if diff := cmp.Diff(want, lines(report)); diff != "" {
		t.Errorf("the differences (-want +got):\n%s", diff)
	}
	if report.Prompts != 2 || report.Calls != 2 || report.Results != 2 {
		t.Errorf("%d prompts, %d calls, %d results; want 2 of each", report.Prompts, report.Calls, report.Results)
	}
}
