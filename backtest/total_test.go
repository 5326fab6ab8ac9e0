package backtest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/backtest"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// The totals say for each hook what it answered, how often it failed or timed out, and how long it
// took.
//
// SPEC O-02
func TestTotals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answers := map[string]hook.Handler[belay.ToolCall, belay.ToolVerdict]{
			"asks":   func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return belay.Ask("look first"), nil },
			"denies": func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return belay.Deny("no"), nil },
			"fails": func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
				return belay.Pass, errors.New("broken")
			},
			"panics": func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { panic("broken") },
			"hangs": func(ctx context.Context, _ belay.ToolCall) (belay.ToolVerdict, error) {
				<-ctx.Done()
				return belay.Pass, ctx.Err()
			},
			"moves": func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
				return belay.ToolVerdict{Input: []byte(`{"path":"attic"}`)}, nil
			},
			"slow": func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
				wait, err := time.ParseDuration(call.ID())
				<-time.After(wait)
				return belay.Pass, err
			},
			"idle": func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
				return belay.Deny("never asked"), nil
			},
		}
		var opts belay.Options
		policy := new(backtest.Policy)
		var calls []scripted.Call
		for name, answer := range answers {
			opts.Tools = append(opts.Tools, belay.NewRawTool(belay.ToolDeclaration{Name: name, Description: "for tests"}, func(context.Context, *belay.Invocation) (belay.Result, error) {
				return belay.Result{Text: "done"}, nil
			}, nil))
			policy.Hooks = append(policy.Hooks, belay.ToolPre.On(name, answer, &hook.Options{
				Timeout: time.Second, Match: hook.Match{Tools: []string{name}}, Capabilities: hook.CanBlock | hook.CanAsk | hook.CanRewriteInput,
			}))
			if name != "idle" && name != "slow" {
				calls = append(calls, scripted.Call{Tool: name, Input: `{"path":"hall"}`})
			}
		}
		calls = append(calls, scripted.Call{ID: "30ms", Tool: "slow", Input: `{}`}, scripted.Call{ID: "20ms", Tool: "slow", Input: `{}`})
		store := memstore.New(nil)
		record(t, store, "s", opts, calls)
		report := run(t, store, policy, nil)
		want := []backtest.HookTotal{
			{ID: "asks", Asked: 1, Asks: 1},
			{ID: "denies", Asked: 1, Denied: 1},
			{ID: "fails", Asked: 1, Denied: 1, Failed: 1},
			{ID: "hangs", Asked: 1, Denied: 1, TimedOut: 1, Time: hook.Latency(time.Second), Slowest: hook.Latency(time.Second)},
			{ID: "idle"},
			{ID: "moves", Asked: 1, Rewrote: 1},
			{ID: "panics", Asked: 1, Denied: 1, Failed: 1},
			{ID: "slow", Asked: 2, Time: hook.Latency(50 * time.Millisecond), Slowest: hook.Latency(30 * time.Millisecond)},
		}
		for i := range want {
			want[i].Phase = belay.ToolPre.Name()
		}
		if diff := cmp.Diff(want, report.Hooks); diff != "" {
			t.Errorf("the totals (-want +got):\n%s", diff)
		}
	})
}
