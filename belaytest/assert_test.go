package belaytest_test

import (
	"context"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

func TestAssertionsHoldAndFail(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule  string
		holds func(turn *belaytest.Turn)
		fails func(turn *belaytest.Turn)
		says  []string // texts in the failure
	}{
		{
			"Ended wants the reason",
			func(turn *belaytest.Turn) { turn.Ended(belay.EndTurn) },
			func(turn *belaytest.Turn) { turn.Ended(belay.EndBlocked) },
			[]string{"want a turn that ends blocked, but it ended end_turn", "--- the turn ended end_turn\nuser\n  what is to do?"},
		},
		{
			"Said wants the text",
			func(turn *belaytest.Turn) { turn.Said("milk"); turn.Said("") },
			func(turn *belaytest.Turn) { turn.Said("eggs") },
			[]string{`want a last text that says "eggs", got "Buy milk."`},
		},
		{
			"Failed wants an error",
			func(*belaytest.Turn) {},
			func(turn *belaytest.Turn) { turn.Failed("") },
			[]string{"want the turn to fail, but it ended end_turn"},
		},
		{
			"EndedBy wants someone",
			func(turn *belaytest.Turn) { turn.EndedBy("", "") },
			func(turn *belaytest.Turn) { turn.EndedBy("no-prod", "") },
			[]string{`want a turn that is ended by "no-prod"`},
		},
		{
			"Called wants every call in order",
			func(turn *belaytest.Turn) { turn.Called("read", "write", "lost") },
			func(turn *belaytest.Turn) { turn.Called("write", "read", "lost") },
			[]string{`want the calls write, read, lost, got read {"path": "docs/../notes.md"}, write {`},
		},
		{
			"Called compares inputs as JSON",
			func(turn *belaytest.Turn) {
				turn.Called(`read { "path":"docs/../notes.md" }`, `write {"path": "/srv/prod/notes.md"}`, "lost {}")
			},
			func(turn *belaytest.Turn) { turn.Called(`read {"path": "notes.md"}`, "write", "lost") },
			[]string{"want the calls"},
		},
		{
			"Called without calls wants none",
			func(*belaytest.Turn) {},
			func(turn *belaytest.Turn) { turn.Called() },
			[]string{"want the calls none, got read"},
		},
		{
			"Rewritten wants who and what",
			func(turn *belaytest.Turn) { turn.Rewritten("read", "clean-paths", `{"path":"notes.md"}`) },
			func(turn *belaytest.Turn) { turn.Rewritten("read", "no-prod", `{"path":"notes.md"}`) },
			[]string{"want a call of read that no-prod rewrote", `got: read {"path":"notes.md"} (rewritten by clean-paths) gave "milk\neggs"`},
		},
		{
			"Rewritten wants a rewriter",
			func(*belaytest.Turn) {},
			func(turn *belaytest.Turn) { turn.Rewritten("lost", "clean-paths", `{}`) },
			[]string{"want a call of lost that clean-paths rewrote to {}"},
		},
		{
			"Result wants a success",
			func(turn *belaytest.Turn) { turn.Result("read", "eggs") },
			func(turn *belaytest.Turn) { turn.Result("write", "") },
			[]string{`want a result of write that says "", got: write`, `failed with the class "denied"`},
		},
		{
			"Result wants the tool to be called",
			func(*belaytest.Turn) {},
			func(turn *belaytest.Turn) { turn.Result("shell", "") },
			[]string{`but shell was not called`},
		},
		{
			"ResultFailed wants the class",
			func(turn *belaytest.Turn) {
				turn.ResultFailed("lost", belay.ClassFailed, "nothing there")
				turn.ResultFailed("lost", "", "")
			},
			func(turn *belaytest.Turn) { turn.ResultFailed("lost", belay.ClassTimeout, "") },
			[]string{`want a failure of lost with the class "timeout"`, `failed with the class "failed": "nothing there"`},
		},
		{
			"ResultFailed refuses a success",
			func(*belaytest.Turn) {},
			func(turn *belaytest.Turn) { turn.ResultFailed("read", "", "") },
			[]string{`want a failure of read`},
		},
		{
			"Denied wants by whom",
			func(turn *belaytest.Turn) {
				turn.Denied("write", "no-prod", "production is off limits")
				turn.Denied("write", "", "")
			},
			func(turn *belaytest.Turn) { turn.Denied("write", "after", "") },
			[]string{`want a call of write that "after" denies`, "no-prod"},
		},
		{
			"Denied wants the reason",
			func(*belaytest.Turn) {},
			func(turn *belaytest.Turn) { turn.Denied("write", "no-prod", "it is late") },
			[]string{`because of "it is late"`},
		},
		{
			"a failure is no denial",
			func(*belaytest.Turn) {},
			func(turn *belaytest.Turn) { turn.Denied("lost", "", "") },
			[]string{"want a call of lost"},
		},
		{
			"Reminded wants each text",
			func(turn *belaytest.Turn) { turn.Reminded("Friday") },
			func(turn *belaytest.Turn) { turn.Reminded("Friday", "Monday") },
			[]string{`want a reminder that says "Monday", got ["It is Friday."]`},
		},
		{
			"Reminded without texts wants none",
			func(*belaytest.Turn) {},
			func(turn *belaytest.Turn) { turn.Reminded() },
			[]string{`want no reminder, got ["It is Friday."]`},
		},
		{
			"Emitted wants events in order",
			func(turn *belaytest.Turn) {
				turn.Emitted(belay.EventTurnStart, belay.EventToolUse, belay.EventToolUseResult, belay.EventTurnEnd)
			},
			func(turn *belaytest.Turn) { turn.Emitted(belay.EventTurnEnd, belay.EventTurnStart) },
			[]string{"want the events [turn_end turn_start] in this order, but turn_start is missing or too early"},
		},
		{
			"HookRan wants the state",
			func(turn *belaytest.Turn) {
				turn.HookRan("no-prod", hook.Completed)
				turn.HookRan("broken", hook.Failed)
			},
			func(turn *belaytest.Turn) { turn.HookRan("no-prod", hook.Failed) },
			[]string{"want a run of no-prod that is failed, got completed", "--- its hooks", "tool.pre: no-prod completed +deny"},
		},
		{
			"HookRan wants a run",
			func(turn *belaytest.Turn) { turn.HookRan("after", hook.Skipped) },
			func(turn *belaytest.Turn) { turn.HookRan("nobody", hook.Completed) },
			[]string{"want a run of nobody that is completed, got none"},
		},
		{
			"HookNotAsked takes what was skipped",
			func(turn *belaytest.Turn) { turn.HookNotAsked("after"); turn.HookNotAsked("nobody") },
			func(turn *belaytest.Turn) { turn.HookNotAsked("no-prod") },
			[]string{"want no-prod not to be called, got a run at tool.pre that is completed"},
		},
		{
			"Diagnosed wants the code",
			func(turn *belaytest.Turn) { turn.Diagnosed(codes.Error) },
			func(turn *belaytest.Turn) { turn.Diagnosed(codes.Timeout) },
			[]string{"want the diagnostic hook.timeout, got hook.error"},
		},
		{
			"Decide wants something to decide",
			func(*belaytest.Turn) {},
			func(turn *belaytest.Turn) { turn.Decide(belaytest.Yes()) },
			[]string{"want a turn that waits for a decision"},
		},
		{
			"SystemSays wants the text",
			func(turn *belaytest.Turn) { turn.Request(1).SystemSays("careful") },
			func(turn *belaytest.Turn) { turn.Request(1).SystemSays("bold") },
			[]string{`request 1: want a system prompt that says "bold", got "Be careful.`, "--- its messages\nuser"},
		},
		{
			"UserSays wants the text of a person",
			func(turn *belaytest.Turn) { turn.Request(-1).UserSays("to do") },
			func(turn *belaytest.Turn) { turn.Request(-1).UserSays("Friday") },
			[]string{`request 4: want a newest user message that says "Friday", got "what is to do?"`},
		},
		{
			"Offers wants every tool",
			func(turn *belaytest.Turn) { turn.Request(2).Offers("write", "read", "lost") },
			func(turn *belaytest.Turn) { turn.Request(2).Offers("write", "read") },
			[]string{"request 2: want the request to offer read, write, but it offers lost, read, write"},
		},
		{
			"Reminds wants each text",
			func(turn *belaytest.Turn) { turn.Request(1).Reminds("Friday") },
			func(turn *belaytest.Turn) { turn.Request(1).Reminds() },
			[]string{"request 1: want no reminder"},
		},
		{
			"Request wants a request",
			func(turn *belaytest.Turn) { turn.Request(-4).UserSays("") },
			func(turn *belaytest.Turn) { turn.Request(5) },
			[]string{"want request 5 of the turn, but the turn has sent only 4"},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			wantFailure(t, failures(t, func(t testing.TB) {
				_, turn := conversation(t)
				test.holds(turn)
			}))
			wantFailure(t, failures(t, func(t testing.TB) {
				_, turn := conversation(t)
				test.fails(turn)
			}), test.says...)
		})
	}
}

// Reminders returns only the reminders of one turn, not those of an earlier turn.
func TestRemindersAreThoseOfTheTurn(t *testing.T) {
	t.Parallel()
	agent := belaytest.New(t, belaytest.Script(belaytest.Says("one"), belaytest.Says("two")), &belay.Options{
		Hooks: []hook.Subscription{friday()[0]},
	})
	agent.Say("first").Reminded("Friday")
	lease, err := agent.Hooks().Install(noProd)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lease.Close() }()
	second := agent.Say("second")
	second.Reminded("Friday")
	if got := len(second.Request(1).Messages); got != 5 { // user, reminder, answer, user, reminder
		t.Errorf("the request has %d messages, want 5", got)
	}
	if got := second.Reminders(); len(got) != 1 {
		t.Errorf("the second turn was reminded of %q, want what it was told itself", got)
	}
}

func TestToolAndApproverAssertionsFail(t *testing.T) {
	t.Parallel()
	tool := belaytest.NewTool("write", "first", "second")
	approver := belaytest.NewApprover(belaytest.Yes(), belaytest.No("not today"))
	ask := belay.ToolPre.On("ask", answer(belay.Ask("sure?")), nil)
	agent := belaytest.New(t, belaytest.Script(
		belaytest.Calls("write", `{"n": 1}`), belaytest.Calls("write", `{"n": 2}`), belaytest.Calls("write", `{"n": 3}`), belaytest.Says("well"),
	), &belay.Options{Tools: []belay.Tool{tool}, Hooks: []hook.Subscription{ask}, Approver: approver})
	turn := agent.Say("go")
	turn.Ended(belay.EndTurn)
	turn.Result("write", "first")
	turn.Denied("write", "test", "not today")
	turn.Denied("write", "belay", "this is question 3, but there are only 2 answers")
	turn.Emitted(belay.EventApprovalRequested, belay.EventApprovalDecided, belay.EventToolUseResult)
	tool.Ran(t, `{"n":1}`)
	approver.Asked(t, "write", "write", "write")

	wantFailure(t, failures(t, func(t testing.TB) { tool.Ran(t) }), `want write to run with none, it ran with {"n": 1}`)
	wantFailure(t, failures(t, func(t testing.TB) { tool.Ran(t, `{"n": 2}`) }), `want write to run with {"n": 2}, it ran with {"n": 1}`)
	wantFailure(t, failures(t, func(t testing.TB) { approver.Asked(t) }), "want questions about none, got write, ")
}

func answer(verdict belay.ToolVerdict) hook.Handler[belay.ToolCall, belay.ToolVerdict] {
	return func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return verdict, nil }
}
