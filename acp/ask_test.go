package acp_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/acp"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/provider/scripted"
)

// fetches is a call that needs approval.
func fetches() scripted.Call {
	return scripted.Call{ID: "a", Tool: "shell", Input: `{"command": "rm -rf ../elsewhere-a"}`}
}

func hosts(dir string, steps ...scripted.Step) acp.Source { return acp.Hosts(options(dir, steps...)) }

// A call that needs approval asks the editor, with the reason and our scopes. The answer is
// the decision.
//
// SPEC U-05
func TestPermissionRequestIsAnApproval(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule    string
		choose  sdk.PermissionOptionId
		allowed bool
		asked   int // how often, for two equal calls
	}{
		{"once is for one call", "allow-once", true, 2},
		{"for the session covers the next call", "allow-session", true, 1},
		{"a rejected call does not run", "reject-once", false, 2},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			c := start(t, nil, scripted.Step{Calls: []scripted.Call{fetches()}}, scripted.Step{Calls: []scripted.Call{fetches()}}, scripted.Step{Text: "done"})
			c.permit = func(context.Context, *sdk.RequestPermissionRequest) (sdk.RequestPermissionOutcome, error) {
				return selected(test.choose), nil
			}
			c.say(c.open(), "Clean up.")
			if got := c.text(); got != "done" {
				t.Fatalf("the agent said %q", got)
			}
			if len(c.seen) != test.asked {
				t.Errorf("the editor was asked %d times, want %d", len(c.seen), test.asked)
			}
			q := c.seen[0]
			if *q.ToolCall.Kind != sdk.ToolKindExecute || !strings.Contains(*q.ToolCall.Title, "rm -rf") || !strings.Contains(q.ToolCall.Content[0].Content.Content.Text.Text, "needs your approval") {
				t.Errorf("the question is %+v", q.ToolCall)
			}
			kinds := []sdk.PermissionOptionKind{}
			for _, o := range q.Options {
				kinds = append(kinds, o.Kind)
			}
			if !slices.Contains(kinds, sdk.PermissionOptionKindAllowOnce) || !slices.Contains(kinds, sdk.PermissionOptionKindAllowAlways) || !slices.Contains(kinds, sdk.PermissionOptionKindRejectOnce) {
				t.Errorf("the options are %v", kinds)
			}
			_, end := c.call("a")
			if denied := *end.Status == sdk.ToolCallStatusFailed && strings.Contains(end.Content[0].Content.Content.Text.Text, "Denied by"); denied == test.allowed {
				t.Errorf("the result is %+v", end)
			}
		})
	}
}

// approvals opens the store of a project as another process does.
func store(t *testing.T, dir string) (belay.ListStore, *belay.Agent) {
	t.Helper()
	h, err := host.Open(t.Context(), options(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	agent, err := h.Agent(t.Context(), host.Main)
	if err != nil {
		t.Fatal(err)
	}
	return h.Store().(belay.ListStore), agent //nolint:forcetypeassert // the stores of hosts list
}

// pending returns the only open question.
func pending(t *testing.T, s belay.ListStore) belay.Question {
	t.Helper()
	var all []belay.Question
	for q, err := range belay.Questions(t.Context(), s, belay.ApprovalFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, q)
	}
	if len(all) != 1 {
		t.Fatalf("there are %d open questions", len(all))
	}
	return all[0]
}

// decideElsewhere decides the only open question in another process.
func decideElsewhere(t *testing.T, dir string, allow bool) {
	t.Helper()
	s, agent := store(t, dir)
	q := pending(t, s)
	if _, err := agent.Decide(t.Context(), belay.Decision{Approval: q.ID, Hash: q.Hash, By: "bob", Allow: allow, Reason: "not today"}); err != nil {
		t.Fatal(err)
	}
}

// A decision made elsewhere withdraws the question, and the turn continues.
//
// SPEC U-05
func TestDecisionElsewhereWithdrawsTheQuestion(t *testing.T) {
	t.Parallel()
	c := start(t, nil, scripted.Step{Calls: []scripted.Call{fetches()}}, scripted.Step{Text: "done"})
	withdrawn := make(chan error, 1)
	c.permit = func(ctx context.Context, _ *sdk.RequestPermissionRequest) (sdk.RequestPermissionOutcome, error) {
		decideElsewhere(t, c.dir, false)
		<-ctx.Done() // the agent withdraws the question
		withdrawn <- context.Cause(ctx)
		return selected("allow-once"), nil // too late
	}
	if reason := c.say(c.open(), "Clean up."); reason != sdk.StopReasonEndTurn {
		t.Errorf("the turn ended with %s", reason)
	}
	<-withdrawn
	if _, end := c.call("a"); *end.Status != sdk.ToolCallStatusFailed || !strings.Contains(end.Content[0].Content.Content.Text.Text, "not today") {
		t.Errorf("the result is %+v", end)
	}
}

// An editor that vanishes while it is asked leaves a parked turn. The next message in the
// loaded session asks again, and then the new message is answered.
//
// SPEC U-05
func TestVanishedEditorLeavesAParkedTurn(t *testing.T) {
	t.Parallel()
	dir := project(t, nil)
	first := connect(t, hosts(dir, scripted.Step{Calls: []scripted.Call{fetches()}}), dir)
	first.initialize(nil)
	session := first.open()
	asked := make(chan struct{})
	first.permit = func(ctx context.Context, _ *sdk.RequestPermissionRequest) (sdk.RequestPermissionOutcome, error) {
		close(asked)
		<-ctx.Done()
		return sdk.RequestPermissionOutcome{}, context.Cause(ctx)
	}
	go func() {
		_, _ = first.Prompt(context.Background(), sdk.PromptRequest{SessionId: session, Prompt: []sdk.ContentBlock{sdk.TextBlock("Clean up.")}}) // ignore errors: the editor vanishes
	}()
	<-asked
	if err := first.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-first.served; err != nil {
		t.Errorf("Serve returned %v", err)
	}
	first.served <- nil // for the end of the test
	s, _ := store(t, dir)
	if q := pending(t, s); q.Call != "a" {
		t.Errorf("the open question is %+v", q)
	}
	second := connect(t, hosts(dir, scripted.Step{Text: "first done. "}, scripted.Step{Text: "second done."}), dir)
	second.initialize(nil)
	second.permit = func(context.Context, *sdk.RequestPermissionRequest) (sdk.RequestPermissionOutcome, error) {
		return selected("reject-once"), nil
	}
	if _, err := second.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: session, Cwd: dir, McpServers: []sdk.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	second.say(session, "And now?")
	if got := second.text(); got != "first done. second done." || len(second.seen) != 1 {
		t.Errorf("the agent said %q, after %d questions", got, len(second.seen))
	}
}

// An editor that cannot ask leaves the turn parked, and says how to decide. When it was
// decided elsewhere, the next message continues it.
//
// SPEC U-05
func TestEditorThatCannotAskLeavesTheQuestionOpen(t *testing.T) {
	t.Parallel()
	c := start(t, nil, scripted.Step{Calls: []scripted.Call{fetches()}}, scripted.Step{Text: "First. "}, scripted.Step{Text: "Second."})
	session := c.open()
	if reason := c.say(session, "Clean up."); reason != sdk.StopReasonEndTurn {
		t.Errorf("the turn ended with %s", reason)
	}
	if got := c.text(); !strings.Contains(got, "belay approvals approve ap-") {
		t.Errorf("the agent said %q", got)
	}
	decideElsewhere(t, c.dir, false)
	c.say(session, "Go on.")
	if got := c.text(); !strings.HasSuffix(got, "First. Second.") {
		t.Errorf("the agent said %q", got)
	}
}

// Cancelling a turn that waits for an answer abandons it: the call is over, and the session
// takes the next message.
//
// SPEC U-05
func TestCancelWhileAsked(t *testing.T) {
	t.Parallel()
	c := start(t, nil, scripted.Step{Calls: []scripted.Call{fetches()}}, scripted.Step{Text: "next"})
	session := c.open()
	c.permit = func(ctx context.Context, _ *sdk.RequestPermissionRequest) (sdk.RequestPermissionOutcome, error) {
		if err := c.Cancel(ctx, sdk.CancelNotification{SessionId: session}); err != nil {
			t.Error(err)
		}
		return sdk.NewRequestPermissionOutcomeCancelled(), nil
	}
	if reason := c.say(session, "Clean up."); reason != sdk.StopReasonCancelled {
		t.Errorf("the turn ended with %s", reason)
	}
	if _, end := c.call("a"); *end.Status != sdk.ToolCallStatusFailed {
		t.Errorf("the call is %s", *end.Status)
	}
	if reason := c.say(session, "Something else."); reason != sdk.StopReasonEndTurn || c.text() != "next" {
		t.Errorf("the next turn ended with %s: %q", reason, c.text())
	}
}

// A question of the model with options is a permission request with these options. A question
// for words is a message, and the next message of the user is the answer.
//
// SPEC U-05
func TestQuestionsOfTheModel(t *testing.T) {
	t.Parallel()
	c := start(t, nil,
		scripted.Step{Calls: []scripted.Call{{ID: "q", Tool: "ask_user", Input: `{"question": "Which day?", "options": ["Monday", "Friday"]}`}}},
		scripted.Step{Expect: &scripted.Expect{Results: []scripted.Result{{Text: "Friday"}}}, Calls: []scripted.Call{{ID: "w", Tool: "ask_user", Input: `{"question": "Which hour?"}`}}},
		scripted.Step{Expect: &scripted.Expect{Results: []scripted.Result{{Text: "at noon"}}}, Text: " Agreed."})
	c.permit = func(_ context.Context, p *sdk.RequestPermissionRequest) (sdk.RequestPermissionOutcome, error) {
		at := slices.IndexFunc(p.Options, func(o sdk.PermissionOption) bool { return o.Name == "Friday" })
		return selected(p.Options[at].OptionId), nil
	}
	session := c.open()
	c.say(session, "Make a plan.")
	if got := c.text(); got != "Which hour?" {
		t.Fatalf("the agent said %q", got)
	}
	c.say(session, "at noon")
	if got := c.text(); got != "Which hour? Agreed." {
		t.Errorf("the agent said %q", got)
	}
}

// An answer that is none of the options decides nothing.
func TestInventedOptionDecidesNothing(t *testing.T) {
	t.Parallel()
	c := start(t, nil, scripted.Step{Calls: []scripted.Call{fetches()}})
	c.permit = func(context.Context, *sdk.RequestPermissionRequest) (sdk.RequestPermissionOutcome, error) {
		return selected("allow-everything"), nil
	}
	c.say(c.open(), "Clean up.")
	s, _ := store(t, filepath.Clean(c.dir))
	if q := pending(t, s); q.Call != "a" {
		t.Errorf("the open question is %+v", q)
	}
}
