package looptest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
)

// A turn can end in nine ways. The caller, turn.post_turn, the turn_end event and
// session.end get the same reason.
//
// SPEC L-05, L-07
func TestEndReasons(t *testing.T) {
	t.Parallel()
	calling := scripted.Step{Calls: []scripted.Call{{Tool: "read"}}, Usage: belay.Usage{In: 60, Out: 40}}
	differing := func(n int) scripted.Step {
		step := callWith("read", `{"n":`+string(rune('0'+n))+`}`)
		step.Usage = calling.Usage
		return step
	}
	for _, test := range []struct {
		rule   string
		want   belay.EndReason
		opts   belay.Options
		steps  []scripted.Step
		turns  int // number of turns; the last turn must end with the reason want, the others normally
		nSteps int
		why    string
	}{
		{rule: "end_turn: the model makes no more calls", want: belay.EndTurn, steps: []scripted.Step{calling, says("done")}, nSteps: 2},
		{rule: "end_turn: a tool gives the final result", want: belay.EndTurn, opts: belay.Options{Tools: []belay.Tool{
			anyTool("final", func(context.Context, *belay.Invocation) (belay.Result, error) { return belay.Result{Final: true}, nil }, nil),
		}}, steps: []scripted.Step{calls("final")}, nSteps: 1},
		{
			rule: "max_steps: the limit is reached", want: belay.EndMaxSteps, opts: belay.Options{Limits: belay.Limits{Steps: 2}},
			steps: []scripted.Step{differing(1), differing(2)}, nSteps: 2,
		},
		{
			rule: "max_steps: the policy is stricter than the limit", want: belay.EndMaxSteps,
			opts: belay.Options{Hooks: []hook.Subscription{stepsPolicy(1)}}, steps: []scripted.Step{differing(1)}, nSteps: 1,
		},
		{
			rule: "max_steps: a policy does not raise the limit", want: belay.EndMaxSteps,
			opts:  belay.Options{Limits: belay.Limits{Steps: 1}, Hooks: []hook.Subscription{stepsPolicy(9)}},
			steps: []scripted.Step{differing(1)}, nSteps: 1,
		},
		{
			rule: "budget: tokens of the turn", want: belay.EndBudget, opts: belay.Options{Budget: belay.Budget{TurnTokens: 200}},
			steps: []scripted.Step{differing(1), differing(2)}, nSteps: 2, why: "the turn has used 200 tokens, and its limit is 200",
		},
		{
			rule: "budget: cost of the turn", want: belay.EndBudget, opts: belay.Options{Budget: belay.Budget{TurnCost: 0.5}},
			steps: []scripted.Step{{Calls: calling.Calls, Usage: belay.Usage{In: 1, Cost: 0.5}}}, nSteps: 1, why: "$0.5000",
		},
		{
			rule: "budget: tokens of the session", want: belay.EndBudget, opts: belay.Options{Budget: belay.Budget{SessionTokens: 250}}, turns: 2,
			steps: []scripted.Step{differing(1), {Text: "done", Usage: calling.Usage}, differing(2)}, nSteps: 1, why: "the session has used 300 tokens, and its limit is 250",
		},
		{
			rule: "budget: cost of the session", want: belay.EndBudget, opts: belay.Options{Budget: belay.Budget{SessionCost: 1}}, turns: 2,
			steps: []scripted.Step{{Text: "done", Usage: belay.Usage{Cost: 1}}}, nSteps: 0, why: "the session has cost $1.0000",
		},
		{rule: "refused: the model refuses", want: belay.EndRefused, steps: []scripted.Step{{Text: "no", Stop: belay.StopRefusal}}, nSteps: 1},
		{rule: "refused: the model refuses without a word", want: belay.EndRefused, steps: []scripted.Step{{Stop: belay.StopRefusal}}, nSteps: 1},
		{rule: "blocked: the message is denied", want: belay.EndBlocked, opts: belay.Options{Hooks: []hook.Subscription{
			belay.UserPromptSubmit.On("gate", answering(belay.UserPromptSubmit, belay.DenyPrompt("not today")), nil),
		}}, why: "not today"},
		{
			rule: "blocked: a call is halted", want: belay.EndBlocked, opts: belay.Options{Hooks: []hook.Subscription{gateOf("gate", belay.Halt("stop it"))}},
			steps: []scripted.Step{calls("read", "read")}, nSteps: 1, why: "stop it",
		},
		{
			rule: "stuck: the same call with the same result, after a warning", want: belay.EndStuck,
			steps: []scripted.Step{calling, calling, calling, calling}, nSteps: 4, why: "repeated the same calls",
		},
		{
			rule: "error: the model fails for good", want: belay.EndError, steps: []scripted.Step{{Fault: &scripted.Fault{Kind: belay.ModelAuth}}},
			nSteps: 1, why: "auth",
		},
		{rule: "error: a hook that fails closed", want: belay.EndError, opts: belay.Options{Hooks: []hook.Subscription{
			belay.TurnPrePolicy.On("closed", func(context.Context, belay.TurnBegun) (belay.TurnPolicy, error) {
				return belay.TurnPolicy{}, errors.New("failed on purpose")
			}, &hook.Options{Failure: hook.Closed}),
		}}, why: "closed"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			log := new(phaseLog)
			opts := test.opts
			opts.Tools = append(opts.Tools, echoTool("read"))
			opts.Hooks = append(opts.Hooks, log.everywhere()...)
			agent, model := newAgent(t, &opts, test.steps...)
			s := agent.Session("s")
			for range test.turns - 1 {
				takeTurn(t, s.Run(t.Context(), "hi"), belay.EndTurn)
			}
			all := take(s.Run(t.Context(), "hi"))
			if all.Turn == nil || all.Reason != test.want || all.Steps != test.nSteps || !strings.Contains(all.Why, test.why) {
				t.Fatalf("the turn is %+v, %v, want %s after %d steps (%s)", all.Turn, all.err, test.want, test.nSteps, test.why)
			}
			if failed := test.want == belay.EndError; failed != (all.err != nil) {
				t.Errorf("the error is %v", all.err)
			}
			if last := all.events[len(all.events)-1]; last.Kind != belay.EventTurnEnd {
				t.Errorf("the last event is %s", last.Kind)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			endedAs(t, log.all(), test.want, max(test.turns, 1))
			if left := model.Left(); test.turns == 0 && test.want != belay.EndTurn && left != 1 {
				t.Errorf("%d steps of the script are left, want the turn to be over with the last but one", left)
			}
			storedResults(t, s)
		})
	}
}

func stepsPolicy(n int) hook.Subscription {
	return belay.TurnPrePolicy.On("steps", answering(belay.TurnPrePolicy, belay.SetPolicy(belay.MaxSteps.Set(n))), nil)
}

// endedAs checks the phases at the end of a turn and of a session. The phase error fires
// directly before turn.post_turn, and only if the turn failed.
func endedAs(t *testing.T, fired []firedPhase, want belay.EndReason, turns int) {
	t.Helper()
	var names []string
	for _, f := range fired {
		names = append(names, f.name)
		if f.name == "session.end" && (f.input["reason"] != string(want) || f.input["turns"] != float64(turns)) {
			t.Errorf("session.end got %v", f.input)
		}
	}
	tail := []string{"turn.post_turn", "session.end"}
	if want == belay.EndError {
		tail = append([]string{"error"}, tail...)
	}
	if len(names) < len(tail) || !slices.Equal(names[len(names)-len(tail):], tail) {
		t.Errorf("the phases were %v, want them to end with %v", names, tail)
	}
	if n := len(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n != "error" })); n > 1 || n == 1 && want != belay.EndError {
		t.Errorf("the phase error fired %d times", n)
	}
	if last := fired[len(fired)-2]; last.input["reason"] != string(want) {
		t.Errorf("turn.post_turn got %v", last.input["reason"])
	}
}

// A denied message is not stored, and no request is sent to the model.
//
// SPEC L-05
func TestADeniedMessageIsNotStored(t *testing.T) {
	t.Parallel()
	agent, model := newAgent(t, &belay.Options{Hooks: []hook.Subscription{
		belay.UserPromptSubmit.On("gate", func(_ context.Context, in belay.UserPrompt) (belay.PromptVerdict, error) {
			if in.Text() == "secret" {
				return belay.DenyPrompt("no secrets"), nil
			}
			return belay.PromptVerdict{}, nil
		}, nil),
	}})
	s := agent.Session("s")
	all := takeTurn(t, s.Run(t.Context(), "secret"), belay.EndBlocked)
	if all.By != "gate" || all.Why != "no secrets" {
		t.Errorf("blocked by %q: %q", all.By, all.Why)
	}
	if stored := transcript(t, s); len(stored) > 0 || len(model.Requests()) > 0 {
		t.Errorf("stored %v, asked %v", stored, model.Requests())
	}
	takeTurn(t, s.Run(t.Context(), "hi"), belay.EndTurn)
	if stored := transcript(t, s); len(stored) != 2 || strings.Contains(stored[0].Text(), "secret") {
		t.Errorf("stored %v", stored)
	}
}

// Halt denies its call, and the other calls of the response do not start. All calls have
// a stored result.
//
// SPEC L-05
func TestHaltKeepsSiblingsFromStarting(t *testing.T) {
	t.Parallel()
	var ran atomic.Int64
	agent, _ := newAgent(t, &belay.Options{
		Tools: []belay.Tool{echoTool("read"), anyTool("write", func(context.Context, *belay.Invocation) (belay.Result, error) {
			ran.Add(1)
			return belay.Result{}, nil
		}, nil)},
		Hooks: []hook.Subscription{belay.ToolPre.On("halt", answering(belay.ToolPre, belay.Halt("enough")), &hook.Options{Match: hook.Match{Tools: []string{"read"}}})},
	}, calls("write", "read", "write"))
	s := agent.Session("s")
	all := takeTurn(t, s.Run(t.Context(), "hi"), belay.EndBlocked)
	var classes []belay.ResultClass
	for _, r := range storedResults(t, s) {
		classes = append(classes, r.Class)
	}
	if want := []belay.ResultClass{belay.ClassAborted, belay.ClassDenied, belay.ClassAborted}; !slices.Equal(classes, want) || ran.Load() > 0 || all.By != "halt" {
		t.Errorf("the results are %v, %d ran, by %q", classes, ran.Load(), all.By)
	}
}

// A parked turn has not ended, so no end phase fires until the turn ends.
//
// SPEC L-05
func TestAParkedTurnHasNotEnded(t *testing.T) {
	t.Parallel()
	log := new(phaseLog)
	agent, _ := newAgent(t, &belay.Options{
		Tools: []belay.Tool{echoTool("read")}, OnAsk: belay.AskPark,
		Hooks: append(log.everywhere(), gateOf("ask", belay.Ask("may it?"))),
	}, calls("read"))
	s := agent.Session("s")
	all := takeTurn(t, s.Run(t.Context(), "hi"), belay.EndParked)
	if len(all.Waits) != 1 || log.count("turn.post_turn") != 0 {
		t.Fatalf("it waits for %v, and turn.post_turn fired %d times", all.Waits, log.count("turn.post_turn"))
	}
	if turn, err := s.Turn(t.Context(), "hello?"); !errors.Is(err, belay.ErrParked) || turn.Reason != belay.EndError {
		t.Errorf("another turn: %+v, %v", turn, err)
	}
	if log.count("turn.post_turn") != 0 || log.count("error") != 0 {
		t.Error("a turn that never was has ended")
	}
	ask := all.Waits[0]
	if _, err := agent.Decide(t.Context(), belay.Decision{Approval: ask.ID, Hash: ask.Hash, Allow: true, By: "ada"}); err != nil {
		t.Fatal(err)
	}
	if again := takeTurn(t, s.Resume(t.Context()), belay.EndTurn); again.ID != all.ID {
		t.Errorf("the turn that was resumed is %q, not %q", again.ID, all.ID)
	}
	if n := log.count("turn.post_turn"); n != 1 {
		t.Errorf("turn.post_turn fired %d times", n)
	}
}
