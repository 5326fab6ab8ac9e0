package backtest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/backtest"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// SPEC O-02
func TestKnownDifferences(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	oldFloor := floorFunc(func(tool, input string) belay.Authorization {
		if tool == "send" && strings.Contains(input, "outside") {
			return belay.Authorization{Decision: belay.ToolDeny, Reason: "outside", By: "rule outside"}
		}
		return belay.Authorization{}
	})
	before := belay.Options{Authorizer: oldFloor, Hooks: []hook.Subscription{denies("no-prod", "note", "prod")}}
	var want []string
	for i := range 200 {
		id := fmt.Sprintf("s%03d", i)
		var calls []scripted.Call
		switch i % 5 {
		case 0: // nothing changes
			calls = []scripted.Call{{Tool: "note", Input: `{"path":"drafts"}`}}
		case 1: // denied before and after
			calls = []scripted.Call{{Tool: "note", Input: `{"path":"prod"}`}}
		case 2: // the changed hook denies this now
			calls = []scripted.Call{{Tool: "note", Input: `{"path":"live"}`}, {Tool: "note", Input: `{"path":"drafts"}`}}
			want = append(want, id+` call note{"path":"live"}: allowed -> denied by no-prod`)
		case 3: // the changed rule asks about this now
			calls = []scripted.Call{{Tool: "send", Input: `{"to":"team"}`}}
			want = append(want, id+` call send{"to":"team"}: allowed -> asked by rule send`)
		case 4: // the changed rule no longer denies this
			calls = []scripted.Call{{Tool: "send", Input: `{"to":"outside"}`}}
			want = append(want, id+` call send{"to":"outside"}: denied by rule outside -> asked by rule send`)
		}
		record(t, store, id, before, calls)
	}
	newFloor := floorFunc(func(tool, _ string) belay.Authorization {
		if tool == "send" {
			return belay.Authorization{Decision: belay.ToolAsk, Reason: "everything that is sent", By: "rule send"}
		}
		return belay.Authorization{}
	})
	changed := belay.ToolPre.On("no-prod", func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
		if in := string(call.Input()); strings.Contains(in, "prod") || strings.Contains(in, "live") {
			return belay.Deny("production"), nil
		}
		return belay.Pass, nil
	}, &hook.Options{Match: hook.Match{Tools: []string{"note"}}})
	policy := &backtest.Policy{Hooks: []hook.Subscription{changed}, Floor: newFloor}
	report := run(t, store, policy, nil)
	if diff := cmp.Diff(want, lines(report)); diff != "" {
		t.Errorf("the differences (-want +got):\n%s", diff)
	}
	if report.Sessions != 200 || report.Prompts != 200 || report.Calls != 240 {
		t.Errorf("replayed %d sessions, %d prompts and %d calls, want 200, 200 and 240", report.Sessions, report.Prompts, report.Calls)
	}
	again := run(t, store, policy, nil)
	if diff := cmp.Diff(lines(report), lines(again)); diff != "" {
		t.Errorf("a second run differs (-first +second):\n%s", diff)
	}
	unchanged := run(t, store, &backtest.Policy{Hooks: before.Hooks, Floor: oldFloor}, nil)
	if len(unchanged.Differences) > 0 {
		t.Errorf("the recorded policy differs from itself:\n%s", strings.Join(lines(unchanged), "\n"))
	}
}

// handlerOf returns a handler that answers as a gate of tool.pre does.
func handlerOf(sub hook.Subscription) hook.Handler[belay.ToolCall, belay.ToolVerdict] {
	runtime, err := hook.NewRuntime(belay.Phases(), nil)
	if err != nil {
		panic(err)
	}
	if _, err := runtime.Install(sub); err != nil {
		panic(err)
	}
	return func(ctx context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
		s := runtime.Snapshot()
		defer func() { _ = s.Release(ctx) }()
		o, err := belay.ToolPre.Dispatch(ctx, s, call)
		return belay.ToolVerdict{Decision: o.Output.Decision, Reason: o.Output.Reason}, err
	}
}
