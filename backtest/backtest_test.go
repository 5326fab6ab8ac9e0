package backtest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

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

// SPEC O-02
func TestAShadowRunGivesTheSameAnswers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		words := []string{"prod", "live", "drafts", "team", "outside"}
		tried := denies("tried", "*", rapid.SampledFrom(words).Draw(rt, "denied"))
		word, kind := rapid.SampledFrom(words).Draw(rt, "also"), rapid.SampledFrom([]string{"denies", "asks", "adds"}).Draw(rt, "other")
		other, auto, changed := changes(kind, word), approves(belay.Allow("fine")), 0
		shadow := tried.Options()
		shadow.Shadow = true
		live := belay.ToolPre.On("tried", handlerOf(tried), &shadow)

		store := memstore.New(nil)
		for i := range rapid.IntRange(1, 4).Draw(rt, "sessions") {
			var calls []scripted.Call
			for range rapid.IntRange(1, 4).Draw(rt, "calls") {
				to := rapid.SampledFrom(words).Draw(rt, "word")
				calls = append(calls, scripted.Call{Tool: rapid.SampledFrom([]string{"note", "send"}).Draw(rt, "tool"), Input: fmt.Sprintf(`{"to":%q}`, to)})
				if calls[len(calls)-1].Tool == "note" && to == word {
					changed++
				}
			}
			record(t, store, fmt.Sprintf("s%d", i), belay.Options{Hooks: []hook.Subscription{live, other, auto}}, calls)
		}
		wouldDeny := 0
		for r, err := range store.Journal().(hook.ListJournal).List(t.Context(), hook.Filter{Subscription: "tried"}) {
			if err != nil {
				rt.Fatal(err)
			}
			if r.Shadow && r.Severity == hook.SeverityDeny {
				wouldDeny++
			}
		}
		report := run(t, store, &backtest.Policy{Hooks: []hook.Subscription{live, other, auto}}, nil)
		if len(report.Differences) != 0 {
			rt.Fatalf("the same hooks differ:\n%s", strings.Join(lines(report), "\n"))
		}
		var got backtest.HookTotal // it stays empty if the other hook denies every call first
		if at := slices.IndexFunc(report.Hooks, func(h backtest.HookTotal) bool { return h.ID == "tried" }); at >= 0 {
			got = report.Hooks[at]
		}
		if got.Denied != wouldDeny {
			rt.Fatalf("the shadow hook denied %d calls in the backtest, and %d live", got.Denied, wouldDeny)
		}
		switchedOn := run(t, store, &backtest.Policy{Hooks: []hook.Subscription{tried, other, auto}}, nil)
		for i := range switchedOn.Differences {
			if now := switchedOn.Differences[i].Now; now.Outcome != backtest.Denied || now.By != "tried" {
				rt.Fatalf("an unexpected difference: %s", lines(switchedOn)[i])
			}
		}
		without := run(t, store, &backtest.Policy{Hooks: []hook.Subscription{live, auto}}, nil)
		if len(without.Differences) != changed {
			rt.Fatalf("the hook that %s changed %d calls, but without it %d differ:\n%s", kind, changed, len(without.Differences), strings.Join(lines(without), "\n"))
		}
	})
}

// changes returns a hook that denies, asks about or adds a field to the calls of note with a
// word. The one that asks has the name of the tool.
func changes(kind, word string) hook.Subscription {
	if kind == "denies" {
		return denies("other", "note", word)
	}
	id := map[string]string{"asks": "note", "adds": "other"}[kind]
	return belay.ToolPre.On(id, func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
		switch text := string(call.Input()); {
		case !strings.Contains(text, word):
			return belay.Pass, nil
		case kind == "asks":
			return belay.Ask("look first"), nil
		default:
			return belay.ToolVerdict{Input: []byte(strings.TrimSuffix(text, "}") + `,"careful":true}`)}, nil
		}
	}, &hook.Options{Match: hook.Match{Tools: []string{"note"}}, Capabilities: hook.CanAsk | hook.CanBlock | hook.CanRewriteInput})
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
