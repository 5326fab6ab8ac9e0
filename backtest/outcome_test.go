package backtest_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/backtest"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// always returns a hook of tool.pre that always answers the same.
func always(id string, v belay.ToolVerdict, err error) hook.Subscription {
	return belay.ToolPre.On(id, func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return v, err }, nil)
}

// rewrites returns a hook that replaces the input of a call.
func rewrites(input string) hook.Subscription {
	return belay.ToolPre.On("move", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
		return belay.ToolVerdict{Input: []byte(input)}, nil
	}, &hook.Options{Capabilities: hook.CanRewriteInput})
}

// then returns a hook that replaces the input after move.
func then(id, input string) hook.Subscription {
	return belay.ToolPre.On(id, func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
		return belay.ToolVerdict{Input: []byte(input)}, nil
	}, &hook.Options{Capabilities: hook.CanRewriteInput, After: []string{"move"}})
}

// approves returns a hook that answers in place of a person.
func approves(v belay.ApprovalVerdict) hook.Subscription {
	return belay.ApprovalRequest.On("auto", func(context.Context, belay.ApprovalAsked) (belay.ApprovalVerdict, error) { return v, nil },
		&hook.Options{Capabilities: hook.CanApprove})
}

// prompts returns a hook of user.prompt.submit.
func prompts(v belay.PromptVerdict) hook.Subscription {
	return belay.UserPromptSubmit.On("p", func(context.Context, belay.UserPrompt) (belay.PromptVerdict, error) { return v, nil },
		&hook.Options{Capabilities: hook.CanBlock | hook.CanRewritePrompt | hook.CanAnswer})
}

// hides returns a hook that removes a word from results.
func hides(word string) hook.Subscription {
	return belay.ToolPost.On("h", func(_ context.Context, r belay.ToolResult) (belay.ToolReaction, error) {
		if !strings.Contains(r.Text(), word) {
			return belay.ToolReaction{}, nil
		}
		return belay.RewriteResult(strings.ReplaceAll(r.Text(), word, "***")), nil
	}, &hook.Options{Capabilities: hook.CanRewriteOutput})
}

// SPEC O-02
func TestOutcomes(t *testing.T) {
	t.Parallel()
	const sent = `s call note{"path":"drafts"}: `
	asks := always("asks", belay.Ask("look first"), nil)
	for name, c := range map[string]struct {
		before, after []hook.Subscription
		floor         belay.Authorizer
		want          []string
	}{
		"a denied call that is allowed now":            {before: []hook.Subscription{always("gate", belay.Deny("no"), nil)}, want: []string{sent + "denied by gate -> allowed"}},
		"a call that ends the turn now":                {after: []hook.Subscription{always("gate", belay.Halt("stop"), nil)}, want: []string{sent + "allowed -> halted by gate"}},
		"a halted call that the same hook only denies": {before: []hook.Subscription{always("gate", belay.Halt("stop"), nil)}, after: []hook.Subscription{always("gate", belay.Deny("no"), nil)}},
		"a gate that fails now denies":                 {after: []hook.Subscription{always("gate", belay.Pass, errors.New("broken"))}, want: []string{sent + "allowed -> denied by gate"}},
		"the floor denies what hooks pass": {
			floor: floorFunc(func(string, string) belay.Authorization {
				return belay.Authorization{Decision: belay.ToolDeny, Reason: "no", By: "rule 1"}
			}),
			want: []string{sent + "allowed -> denied by rule 1"},
		},
		"a floor that panics denies": {
			floor: floorFunc(func(string, string) belay.Authorization { panic("broken") }), want: []string{sent + "allowed -> denied by floor"},
		},
		"an approved call that needs no approval now": {before: []hook.Subscription{asks, approves(belay.Allow("fine"))}, want: []string{sent + "asked by asks, approved by auto -> allowed"}},
		"an approver that refuses now": {
			before: []hook.Subscription{asks, approves(belay.Allow("fine"))}, after: []hook.Subscription{asks, approves(belay.DenyApproval("no"))},
			want: []string{sent + "asked by asks, approved by auto -> asked by asks, refused by auto"},
		},
		"the same question is no difference": {before: []hook.Subscription{asks, approves(belay.Allow("fine"))}, after: []hook.Subscription{asks, approves(belay.Allow("fine"))}},
		"a call that is rewritten now":       {after: []hook.Subscription{rewrites(`{"path":"attic"}`)}, want: []string{sent + `allowed -> allowed as {"path":"attic"}`}},
		"a call that is rewritten differently": {
			before: []hook.Subscription{rewrites(`{"path":"attic"}`)}, after: []hook.Subscription{rewrites(`{"path":"cellar"}`)},
			want: []string{sent + `allowed as {"path":"attic"} -> allowed as {"path":"cellar"}`},
		},
		"a field that a hook added and nobody adds now": {
			before: []hook.Subscription{rewrites(`{"path":"drafts","careful":true}`)}, want: []string{sent + `allowed as {"path":"drafts","careful":true} -> allowed`},
		},
		"a hook with the name of the tool is gone": {
			before: []hook.Subscription{always("note", belay.Ask("look first"), nil), approves(belay.Allow("fine"))}, want: []string{sent + "asked by note, approved by auto -> allowed"},
		},
		"a denied call that a person must approve now": {before: []hook.Subscription{always("gate", belay.Deny("no"), nil)}, after: []hook.Subscription{asks}, want: []string{sent + "denied by gate -> asked by asks"}},
		"a call that two hooks rewrote, one of them as now": {
			before: []hook.Subscription{rewrites(`{"path":"attic"}`), then("again", `{"path":"cellar"}`)}, after: []hook.Subscription{rewrites(`{"path":"attic"}`)},
			want: []string{sent + `allowed as {"path":"cellar"} -> allowed as {"path":"attic"}`},
		},
		"one hook rewrites as two did before": {
			before: []hook.Subscription{rewrites(`{"path":"attic"}`), then("again", `{"path":"cellar"}`)}, after: []hook.Subscription{rewrites(`{"path":"cellar"}`)},
		},
		"an approved call with another input now": {
			before: []hook.Subscription{asks, approves(belay.Allow("fine"))}, after: []hook.Subscription{rewrites(`{"path":"attic"}`), asks, approves(belay.Allow("fine"))},
			want: []string{sent + `asked by asks, approved by auto -> asked by asks, approved by auto as {"path":"attic"}`},
		},
		"the same rewriting is no difference": {before: []hook.Subscription{rewrites(`{"path": "attic"}`)}, after: []hook.Subscription{rewrites(`{"path":"attic"}`)}},
		"gates see the rewritten input": {
			after: []hook.Subscription{rewrites(`{"path":"prod"}`), denies("no-prod", "note", "prod")},
			want:  []string{sent + `allowed -> denied by no-prod as {"path":"prod"}`},
		},
		"a message that is denied now":         {after: []hook.Subscription{prompts(belay.DenyPrompt("no"))}, want: []string{`s prompt : allowed -> denied by p`}},
		"a message that is answered now":       {after: []hook.Subscription{prompts(belay.AnswerPrompt("42"))}, want: []string{`s prompt : allowed -> answered as "42"`}},
		"a message that is no longer answered": {before: []hook.Subscription{prompts(belay.AnswerPrompt("42"))}, want: []string{`s prompt : answered as "42" -> allowed`}},
		"a message that is answered differently": {
			before: []hook.Subscription{prompts(belay.AnswerPrompt("42"))}, after: []hook.Subscription{prompts(belay.AnswerPrompt("43"))},
			want: []string{`s prompt : answered as "42" -> answered as "43"`},
		},
		"the same answer is no difference": {before: []hook.Subscription{prompts(belay.AnswerPrompt("42"))}, after: []hook.Subscription{prompts(belay.AnswerPrompt("42"))}},
		"a message that is rewritten now":  {after: []hook.Subscription{prompts(belay.RewritePrompt("other"))}, want: []string{`s prompt : allowed -> allowed as "other"`}},
		"the same new text is no difference": {
			before: []hook.Subscription{prompts(belay.RewritePrompt("other"))}, after: []hook.Subscription{prompts(belay.RewritePrompt("other"))},
		},
		"a message that is no longer rewritten": {before: []hook.Subscription{prompts(belay.RewritePrompt("other"))}, want: []string{`s prompt : allowed as "other" -> allowed`}},
		"a result that is rewritten now":        {after: []hook.Subscription{hides("drafts")}, want: []string{`s result note{"path":"drafts"}: kept -> kept as "done with {\"path\":\"***\"}"`}},
		"a result that was rewritten before":    {before: []hook.Subscription{hides("drafts")}, after: []hook.Subscription{hides("drafts")}},
		"the result of a call that is denied now is not replayed": {
			after: []hook.Subscription{hides("drafts"), denies("gate", "*", "")}, want: []string{sent + "allowed -> denied by gate"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memstore.New(nil)
			record(t, store, "s", belay.Options{Hooks: c.before}, []scripted.Call{{Tool: "note", Input: `{"path":"drafts"}`}})
			report := run(t, store, &backtest.Policy{Hooks: c.after, Floor: c.floor}, nil)
			if diff := cmp.Diff(c.want, lines(report)); diff != "" {
				t.Errorf("the differences (-want +got):\n%s", diff)
			}
		})
	}
}

// SPEC O-02
func TestHooksWithEffectsAreNotAsked(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	gate := denies("gate", "note", "prod")
	opts := gate.Options()
	opts.Kind = hook.HandlerWebhook
	asked := 0
	webhook := belay.ToolPre.On("gate", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
		asked++
		return belay.Pass, nil
	}, &opts)
	after := denies("after", "note", "drafts").Options()
	after.After = []string{"gate"}
	late := belay.ToolPre.On("after", handlerOf(denies("after", "note", "drafts")), &after)
	record(t, store, "s", belay.Options{Hooks: []hook.Subscription{gate}}, []scripted.Call{
		{Tool: "note", Input: `{"path":"prod"}`}, {Tool: "note", Input: `{"path":"drafts"}`}, {Tool: "nothing", Input: `{}`},
	})
	policy := &backtest.Policy{Hooks: []hook.Subscription{webhook, late}}
	report := run(t, store, policy, nil)
	if asked > 0 {
		t.Errorf("the webhook was asked %d times", asked)
	}
	if diff := cmp.Diff([]string{`s call note{"path":"drafts"}: allowed -> denied by after`}, lines(report)); diff != "" {
		t.Errorf("the differences (-want +got):\n%s", diff)
	}
	if report.Unknown != 1 || report.NotReplayed["not_found"] != 1 {
		t.Errorf("unknown %d, not replayed %v; want 1 unknown, 1 not_found", report.Unknown, report.NotReplayed)
	}
	if diff := cmp.Diff([]backtest.NotAsked{{Phase: "tool.pre", ID: "gate", Why: "it sends the call to a webhook"}}, report.NotAsked); diff != "" {
		t.Errorf("not asked (-want +got):\n%s", diff)
	}
	report = run(t, store, policy, &backtest.Options{AllowEffects: true})
	if asked != 2 || len(report.Differences) != 2 {
		t.Errorf("with AllowEffects the webhook was asked %d times, and there are %d differences; want 2 and 2", asked, len(report.Differences))
	}
}

// A tool that refuses by itself has run: no policy denied the call, and tool.post got its result.
//
// SPEC O-02
func TestToolsThatRefuseAreNoDifference(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	shy := belay.NewRawTool(belay.ToolDeclaration{Name: "shy", Description: "Refuses."}, func(context.Context, *belay.Invocation) (belay.Result, error) {
		return belay.Failed(belay.ClassDenied, "drafts was not read, so nothing was changed."), nil
	}, nil)
	record(t, store, "s", belay.Options{Tools: []belay.Tool{shy}}, []scripted.Call{{Tool: "shy", Input: `{}`}})
	report := run(t, store, &backtest.Policy{Hooks: []hook.Subscription{hides("drafts")}}, nil)
	if diff := cmp.Diff([]string{`s result shy{}: kept -> kept as "*** was not read, so nothing was changed."`}, lines(report)); diff != "" {
		t.Errorf("the differences (-want +got):\n%s", diff)
	}
}

// Defaults that Belay added to a call are no rewriting, also if a hook rewrote the same call. What
// a hook added is one.
//
// SPEC O-02
func TestDefaultsAreNoDifference(t *testing.T) {
	t.Parallel()
	type input struct {
		Path    string `json:"path"`
		Deep    int    `json:"deep" default:"3"`
		Careful *bool  `json:"careful,omitempty"`
	}
	walk := belay.NewTool("walk", "Walks.", func(context.Context, input) (string, error) { return "there", nil }, nil)
	moves := func(input string) hook.Subscription {
		return belay.ToolPre.On("move", func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
			if !strings.Contains(string(call.Input()), "drafts") {
				return belay.Pass, nil
			}
			return belay.ToolVerdict{Input: []byte(input)}, nil
		}, &hook.Options{Capabilities: hook.CanRewriteInput})
	}
	for name, c := range map[string]struct {
		before, after string
		want          []string
	}{
		"only the default is missing": {before: `{"path":"attic","deep":3}`, after: `{"path":"attic"}`},
		"another field is missing": {
			before: `{"path":"attic","deep":3,"careful":true}`, after: `{"path":"attic"}`,
			want: []string{`s call walk{"path":"drafts"}: allowed as {"path":"attic","deep":3,"careful":true} -> allowed as {"path":"attic"}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memstore.New(nil)
			record(t, store, "s", belay.Options{Tools: []belay.Tool{walk}, Hooks: []hook.Subscription{moves(c.before)}},
				[]scripted.Call{{Tool: "walk", Input: `{"path":"hall"}`}, {Tool: "walk", Input: `{"path":"drafts"}`}})
			report := run(t, store, &backtest.Policy{Hooks: []hook.Subscription{moves(c.after)}}, nil)
			if diff := cmp.Diff(c.want, lines(report)); diff != "" {
				t.Errorf("the differences (-want +got):\n%s", diff)
			}
		})
	}
}

// A declared action that writes is not asked, whatever capabilities its file gives it. One that
// only answers is.
//
// SPEC O-02
func TestActionsThatWriteAreNotAsked(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	record(t, store, "s", belay.Options{}, []scripted.Call{{Tool: "note", Input: `{}`}})
	capabilities := map[string]hook.Capability{"default": 0, "none": hook.NoCapability, "audit": hook.CanAudit, "block": hook.CanBlock}
	for name, can := range capabilities {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var logged strings.Builder
			set, err := declare.New([]*declare.Declaration{
				{ID: "log", Phase: "tool.pre", Dir: dir, Kind: hook.HandlerAction, Action: &declare.Action{Name: "log", Text: "seen"}, Options: hook.Options{Capabilities: can}},
				{ID: "save", Phase: "user.prompt.submit", Dir: dir, Kind: hook.HandlerAction, Action: &declare.Action{Name: "save_json", Text: "got.jsonl"}, Options: hook.Options{Capabilities: can}},
				{ID: "deny", Phase: "tool.pre", Dir: dir, Kind: hook.HandlerAction, Action: &declare.Action{Name: "deny", Text: "not here"}},
			}, hook.Origin{}, &declare.Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
			if err != nil {
				t.Fatal(err)
			}
			report := run(t, store, &backtest.Policy{Hooks: set.Subscriptions()}, nil)
			if err := set.Close(); err != nil {
				t.Fatal(err)
			}
			const why = "it writes a log or a file"
			if diff := cmp.Diff([]backtest.NotAsked{{Phase: "tool.pre", ID: "log", Why: why}, {Phase: "user.prompt.submit", ID: "save", Why: why}}, report.NotAsked); diff != "" {
				t.Errorf("not asked (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{`s call note{}: allowed -> denied by deny`}, lines(report)); diff != "" {
				t.Errorf("the differences (-want +got):\n%s", diff)
			}
			if files, err := os.ReadDir(dir); err != nil || len(files) > 0 || logged.Len() > 0 {
				t.Errorf("the actions left %v (%v) and logged %q", files, err, logged.String())
			}
		})
	}
}

// A hook that nothing waits for any more decides nothing: what it denied or rewrote before is a
// difference, and not unknown.
//
// SPEC O-02
func TestHooksThatNothingWaitsFor(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	record(t, store, "s", belay.Options{Hooks: []hook.Subscription{denies("gate", "note", "prod"), prompts(belay.RewritePrompt("other"))}}, []scripted.Call{{Tool: "note", Input: `{"path":"prod"}`}})
	left := &hook.Options{Kind: hook.HandlerCommand, Effects: true}
	gate := belay.ToolPre.On("gate", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
		t.Error("the hook was asked")
		return belay.Pass, nil
	}, left)
	prompt := belay.UserPromptSubmit.On("p", func(context.Context, belay.UserPrompt) (belay.PromptVerdict, error) {
		t.Error("the hook was asked")
		return belay.PromptVerdict{}, nil
	}, left)
	for _, opts := range []*backtest.Options{nil, {AllowEffects: true}} {
		report := run(t, store, &backtest.Policy{Hooks: []hook.Subscription{gate, prompt}}, opts)
		want := []string{`s prompt : allowed as "other" -> allowed`, `s call note{"path":"prod"}: denied by gate -> allowed`}
		if diff := cmp.Diff(want, lines(report)); diff != "" || report.Unknown != 0 {
			t.Errorf("%d unknown, the differences (-want +got):\n%s", report.Unknown, diff)
		}
		const why = "nothing waits for it, so it changes no outcome"
		if diff := cmp.Diff([]backtest.NotAsked{{Phase: "tool.pre", ID: "gate", Why: why, Idle: true}, {Phase: "user.prompt.submit", ID: "p", Why: why, Idle: true}}, report.NotAsked); diff != "" {
			t.Errorf("not asked (-want +got):\n%s", diff)
		}
	}
}

// SPEC O-02
func TestGoHooksWithEffectsAreNotAsked(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	record(t, store, "s", belay.Options{}, []scripted.Call{{Tool: "note", Input: `{}`}})
	asked := 0
	writes := belay.ToolPre.On("writes", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
		asked++
		return belay.Pass, nil
	}, &hook.Options{Effects: true})
	policy := &backtest.Policy{Hooks: []hook.Subscription{writes}}
	report := run(t, store, policy, nil)
	if diff := cmp.Diff([]backtest.NotAsked{{Phase: "tool.pre", ID: "writes", Why: "it has effects"}}, report.NotAsked); diff != "" || asked > 0 {
		t.Errorf("asked %d times, not asked (-want +got):\n%s", asked, diff)
	}
	if run(t, store, policy, &backtest.Options{AllowEffects: true}); asked != 1 {
		t.Errorf("with AllowEffects the hook was asked %d times, want 1", asked)
	}
}
