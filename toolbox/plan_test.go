package toolbox_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/policy"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/toolbox"
)

// planKit is an agent in plan mode whose user answers as approve says.
func planKit(t *testing.T, steps []scripted.Step, approve func(belay.Question) belay.Decision) (*belay.Agent, *atomic.Bool, string) {
	t.Helper()
	dir := t.TempDir()
	var planning atomic.Bool
	planning.Store(true)
	plan, err := permit.New(dir, &permit.Options{Mode: permit.Plan})
	if err != nil {
		t.Fatal(err)
	}
	agent, err := belay.New(scripted.New(steps, nil), &belay.Options{
		Store: memstore.New(nil), OnAsk: belay.AskWait,
		Authorizer: authorizerFunc(func(ctx context.Context, call belay.ToolCall) (belay.Authorization, error) {
			if planning.Load() {
				return plan.Authorize(ctx, call)
			}
			return plan.In(permit.Standard).Authorize(ctx, call)
		}),
		Approver: approverFunc(func(_ context.Context, q belay.Question) (belay.Decision, error) { return approve(q), nil }),
		Extensions: []belay.Extension{
			toolbox.New(openRoot(t, dir), nil),
			toolbox.Planning(func(context.Context, string, string, policy.Settings) bool { return planning.Load() }, func(context.Context, string) (string, error) { planning.Store(false); return "standard", nil }),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Close(t.Context()) })
	return agent, &planning, dir
}

type authorizerFunc func(context.Context, belay.ToolCall) (belay.Authorization, error)

func (f authorizerFunc) Authorize(ctx context.Context, call belay.ToolCall) (belay.Authorization, error) {
	return f(ctx, call)
}

type approverFunc func(context.Context, belay.Question) (belay.Decision, error)

func (f approverFunc) Approve(ctx context.Context, q belay.Question) (belay.Decision, error) {
	return f(ctx, q)
}

// In plan mode nothing changes until the user approves the plan. A denial tells the model what
// to change. After the approval, the same turn does the work.
//
// SPEC U-02
func TestPlanMode(t *testing.T) {
	t.Parallel()
	asked := 0
	agent, planning, dir := planKit(t, []scripted.Step{
		{Calls: []scripted.Call{call("write", `{"path": "a.txt", "content": "too early"}`)}},
		{Calls: []scripted.Call{call("present_plan", `{"plan": "1. write b.txt"}`)}},
		{Calls: []scripted.Call{call("present_plan", `{"plan": "1. write a.txt"}`)}},
		{Calls: []scripted.Call{call("write", `{"path": "a.txt", "content": "done"}`)}},
		{Text: "done"},
	}, func(q belay.Question) belay.Decision {
		asked++
		if q.Tool != "present_plan" {
			t.Errorf("asked about %s", q.Tool)
		}
		return belay.Decision{Approval: q.ID, Hash: q.Hash, By: "ann", Allow: asked > 1, Reason: "in a.txt, please"}
	})
	var results []string
	for event, err := range agent.Session("s").Run(t.Context(), "go") {
		if err != nil {
			t.Fatal(err)
		}
		if event.Kind == belay.EventToolUseResult {
			results = append(results, event.Result.Text)
		}
	}
	want := []string{"plan mode allows nothing above zone 0", "in a.txt, please", "approved the plan", "a.txt was created"}
	if len(results) != len(want) {
		t.Fatalf("results = %q", results)
	}
	for i, text := range want {
		if !strings.Contains(results[i], text) {
			t.Errorf("result %d = %q, want it to contain %q", i+1, results[i], text)
		}
	}
	if planning.Load() || asked != 2 {
		t.Errorf("plan mode is on: %v, asked %d times, want off and 2", planning.Load(), asked)
	}
	if got := (&kit{t: t, dir: dir}).content("a.txt"); got != "done" {
		t.Errorf("a.txt = %q", got)
	}
}

// Outside plan mode, present_plan does not ask anybody.
func TestPresentPlanOutsidePlanMode(t *testing.T) {
	t.Parallel()
	agent, planning, _ := planKit(t, []scripted.Step{{Calls: []scripted.Call{call("present_plan", `{"plan": "1. work"}`)}}, {Text: "done"}}, func(q belay.Question) belay.Decision {
		t.Error("somebody was asked")
		return belay.Decision{Approval: q.ID, Hash: q.Hash}
	})
	planning.Store(false)
	for event, err := range agent.Session("s").Run(t.Context(), "go") {
		if err != nil {
			t.Fatal(err)
		}
		if event.Kind == belay.EventToolUseResult && !strings.Contains(event.Result.Text, "not in plan mode") {
			t.Errorf("result = %q", event.Result.Text)
		}
	}
}
