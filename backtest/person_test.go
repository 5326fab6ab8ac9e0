package backtest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/backtest"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/policy"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/toolbox"
)

// person answers every question.
type person struct{ allow bool }

func (p person) Approve(context.Context, belay.Question) (belay.Decision, error) {
	return belay.Decision{Allow: p.allow, By: "ann (belay)"}, nil
}

// named returns a hook under another name.
func named(id string, v belay.ApprovalVerdict) hook.Subscription {
	return belay.ApprovalRequest.On(id, func(context.Context, belay.ApprovalAsked) (belay.ApprovalVerdict, error) { return v, nil },
		&hook.Options{Capabilities: hook.CanApprove})
}

// It is a difference if a hook answers what a person was asked, and the reverse: the person is
// no longer asked, or must be.
//
// SPEC O-02
func TestWhoAnswersIsADifference(t *testing.T) {
	t.Parallel()
	const sent = `s call note{"path":"drafts"}: `
	asks := always("asks", belay.Ask("look first"), nil)
	auto := named("project/auto", belay.Allow("fine"))
	for name, c := range map[string]struct {
		before, after []hook.Subscription
		want          []string
	}{
		"a hook answers in place of a person": {
			before: []hook.Subscription{asks}, after: []hook.Subscription{asks, auto},
			want: []string{sent + "asked by asks, approved by ann (belay) -> asked by asks, approved by project/auto"},
		},
		"a person must answer in place of a hook that is gone": {
			before: []hook.Subscription{asks, auto}, after: []hook.Subscription{asks},
			want: []string{sent + "asked by asks, approved by project/auto -> asked by asks"},
		},
		"a person must answer in place of a hook that is silent now": {
			before: []hook.Subscription{asks, approves(belay.Allow("fine"))}, after: []hook.Subscription{asks, approves(belay.ApprovalVerdict{})},
			want: []string{sent + "asked by asks, approved by auto -> asked by asks"},
		},
		"a person is asked as before": {before: []hook.Subscription{asks}, after: []hook.Subscription{asks}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memstore.New(nil)
			record(t, store, "s", belay.Options{Hooks: c.before, Approver: person{true}}, []scripted.Call{{Tool: "note", Input: `{"path":"drafts"}`}})
			report := run(t, store, &backtest.Policy{Hooks: c.after}, nil)
			if diff := cmp.Diff(c.want, lines(report)); diff != "" {
				t.Errorf("the differences (-want +got):\n%s", diff)
			}
		})
	}
}

// A question that the tool itself asks is no part of the policy, whatever the person answers.
//
// SPEC O-02
func TestQuestionsOfTools(t *testing.T) {
	t.Parallel()
	for _, allow := range []bool{true, false} {
		store := memstore.New(nil)
		curious := belay.NewRawTool(belay.ToolDeclaration{Name: "order", Description: "Orders."}, func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
			if len(call.Answers) == 0 {
				return belay.Result{}, belay.ParkAsk("Which size?")
			}
			return belay.Result{Text: "ordered"}, nil
		}, nil)
		record(t, store, "s", belay.Options{Tools: []belay.Tool{curious}, Approver: person{allow}}, []scripted.Call{{Tool: "order", Input: `{}`}})
		report := run(t, store, &backtest.Policy{Hooks: []hook.Subscription{hides("nothing")}}, nil)
		if len(report.Differences) > 0 || report.Calls != 1 {
			t.Errorf("answered with %v: %d calls, and the differences\n%s", allow, report.Calls, strings.Join(lines(report), "\n"))
		}
	}
}

// So are the questions of the tools that Belay has for it, whose hooks have the names of the tools.
//
// SPEC O-02
func TestQuestionsOfTheModel(t *testing.T) {
	t.Parallel()
	planning := toolbox.Planning(
		func(context.Context, string, string, policy.Settings) bool { return true },
		func(context.Context, string) (string, error) { return "standard", nil },
	)
	for tool, c := range map[string]struct {
		extension belay.Extension
		input     string
	}{
		toolbox.AskUserTool: {toolbox.AskUser(), `{"question":"Which size?"}`},
		toolbox.PlanTool:    {planning, `{"plan":"Do it."}`},
	} {
		for _, allow := range []bool{true, false} {
			store := memstore.New(nil)
			record(t, store, "s", belay.Options{Extensions: []belay.Extension{c.extension}, Approver: person{allow}}, []scripted.Call{{Tool: tool, Input: c.input}})
			report := run(t, store, &backtest.Policy{}, nil)
			if len(report.Differences) > 0 || report.Calls != 1 {
				t.Errorf("%s answered with %v: %d calls, and the differences\n%s", tool, allow, report.Calls, strings.Join(lines(report), "\n"))
			}
		}
	}
}

// The reason of a denial can be so long that its end was cut. The call was still denied.
//
// SPEC O-02
func TestLongReasons(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	long := always("gate", belay.Deny(strings.Repeat("no reason at all ", 20_000)), nil)
	record(t, store, "s", belay.Options{Hooks: []hook.Subscription{long}}, []scripted.Call{{Tool: "note", Input: `{"path":"drafts"}`}})
	if report := run(t, store, &backtest.Policy{Hooks: []hook.Subscription{long}}, nil); len(report.Differences) > 0 {
		t.Errorf("the same policy differs: %.300s", strings.Join(lines(report), "\n"))
	}
	if got := lines(run(t, store, &backtest.Policy{}, nil)); len(got) != 1 || !strings.Contains(got[0], "denied by gate -> allowed") {
		t.Errorf("without the gate: %.300s", got)
	}
}

// silenced returns a hook that leaves the process, so that a backtest does not ask it.
func silenced[In any, Out hook.Output](t *testing.T, phase hook.Phase[In, Out], id string, can hook.Capability) hook.Subscription {
	return phase.On(id, func(context.Context, In) (none Out, _ error) {
		t.Errorf("%s was asked", id)
		return none, nil
	}, &hook.Options{Kind: hook.HandlerWebhook, Capabilities: can})
}

// What a hook did that is not asked now is unknown, and no difference.
//
// SPEC O-02
func TestWhatIsUnknown(t *testing.T) {
	t.Parallel()
	asks := always("asks", belay.Ask("look first"), nil)
	for name, c := range map[string]struct{ before, after []hook.Subscription }{
		"it rewrote the input": {
			[]hook.Subscription{rewrites(`{"path":"attic"}`)}, []hook.Subscription{silenced(t, belay.ToolPre, "move", hook.CanRewriteInput)},
		},
		"it approved": {
			[]hook.Subscription{asks, approves(belay.Allow("fine"))}, []hook.Subscription{asks, silenced(t, belay.ApprovalRequest, "auto", hook.CanApprove)},
		},
		"it rewrote the message": {
			[]hook.Subscription{prompts(belay.RewritePrompt("other"))}, []hook.Subscription{silenced(t, belay.UserPromptSubmit, "p", hook.CanBlock|hook.CanRewritePrompt)},
		},
		"it answered the message": {
			[]hook.Subscription{prompts(belay.AnswerPrompt("42"))}, []hook.Subscription{silenced(t, belay.UserPromptSubmit, "p", hook.CanBlock|hook.CanAnswer)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memstore.New(nil)
			record(t, store, "s", belay.Options{Hooks: c.before}, []scripted.Call{{Tool: "note", Input: `{"path":"drafts"}`}})
			report := run(t, store, &backtest.Policy{Hooks: c.after}, nil)
			if len(report.Differences) > 0 || report.Unknown != 1 || len(report.NotAsked) != 1 {
				t.Errorf("%d unknown, %d not asked, want 1 and 1, and the differences\n%s", report.Unknown, len(report.NotAsked), strings.Join(lines(report), "\n"))
			}
		})
	}
}

// The sessions of subagents have the labels of the session that they belong to. A report holds
// the first differences, and counts the others.
//
// SPEC O-02
func TestLabelsAndLimits(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	for _, id := range []string{"a", "a/child", "b", "c"} {
		record(t, store, id, belay.Options{}, []scripted.Call{{Tool: "note", Input: `{"path":"prod"}`}, {Tool: "note", Input: `{"path":"prod2"}`}})
	}
	agent, err := belay.New(scripted.New(nil, nil), &belay.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Session("a").Describe(t.Context(), belay.SessionUpdate{Labels: map[string]string{"team": "web"}}); err != nil {
		t.Fatal(err)
	}
	policy := &backtest.Policy{Hooks: []hook.Subscription{denies("no-prod", "note", "prod")}}
	if r := run(t, store, policy, &backtest.Options{Labels: map[string]string{"team": "web"}}); r.Sessions != 2 || r.Calls != 4 {
		t.Errorf("with a label, %d sessions and %d calls are replayed, want 2 and 4", r.Sessions, r.Calls)
	}
	all := run(t, store, policy, nil)
	for limit := 1; limit < 8; limit++ {
		r := run(t, store, policy, &backtest.Options{Limit: limit})
		if diff := cmp.Diff(lines(all)[:limit], lines(r)); diff != "" || r.Omitted != 8-limit {
			t.Errorf("with the limit %d, %d are left out, and (-want +got):\n%s", limit, r.Omitted, diff)
		}
	}
}
