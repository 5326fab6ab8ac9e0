package belay_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// Hooks tighten what the floor says and never loosen it.
//
// SPEC T-01
func TestFloorAndHooks(t *testing.T) {
	t.Parallel()
	floor := func(decision belay.ToolDecision) belay.Options {
		return belay.Options{Authorizer: floorFunc(func(belay.ToolCall) (belay.Authorization, error) {
			return belay.Authorization{Decision: decision, Reason: "says the floor", By: "guard"}, nil
		})}
	}
	for _, test := range []struct {
		rule  string
		opts  belay.Options
		hook  belay.ToolVerdict
		by    string // who denies; "" if the call runs
		asked bool
		end   belay.EndReason
	}{
		{"nothing to say on either side runs", floor(belay.ToolPass), belay.Pass, "", false, belay.EndTurn},
		{"the floor denies what hooks pass", floor(belay.ToolDeny), belay.Pass, "guard", false, belay.EndTurn},
		{"the floor denies what hooks ask about, and nobody is asked", floor(belay.ToolDeny), belay.Ask("?"), "guard", false, belay.EndTurn},
		{"the floor asks about what hooks pass", floor(belay.ToolAsk), belay.Pass, "", true, belay.EndTurn},
		{"hooks deny what the floor passes", floor(belay.ToolPass), belay.Deny("no"), "gate", false, belay.EndTurn},
		{"hooks deny what the floor asks about", floor(belay.ToolAsk), belay.Deny("no"), "gate", false, belay.EndTurn},
		{"hooks ask about what the floor passes", floor(belay.ToolPass), belay.Ask("?"), "", true, belay.EndTurn},
		{"both ask once", floor(belay.ToolAsk), belay.Ask("?"), "", true, belay.EndTurn},
		{"a hook halts what the floor denies", floor(belay.ToolDeny), belay.Halt("enough"), "gate", false, belay.EndBlocked},
		{"the floor halts what a hook denies", floor(belay.ToolHalt), belay.Deny("no"), "guard", false, belay.EndBlocked},
		{"a word the floor cannot say denies", floor("maybe"), belay.Pass, "guard", false, belay.EndTurn},
		{"an error of the floor denies", belay.Options{Authorizer: floorFunc(func(belay.ToolCall) (belay.Authorization, error) {
			return belay.Authorization{}, errors.New("out of order")
		})}, belay.Pass, "floor", false, belay.EndTurn},
		{"a panic of the floor denies", belay.Options{Authorizer: floorFunc(func(belay.ToolCall) (belay.Authorization, error) {
			panic("oh no")
		})}, belay.Pass, "belay", false, belay.EndTurn},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			opts := test.opts
			var asked atomic.Int64
			opts.Tools = []belay.Tool{echoTool("echo")}
			opts.Hooks = []hook.Subscription{gateOf("gate", test.hook)}
			opts.Approver = approverFunc(func(context.Context, belay.Question) (belay.Decision, error) {
				asked.Add(1)
				return belay.Decision{Allow: true, By: "ann"}, nil
			})
			agent, _ := newAgent(t, &opts, calls("echo"))
			session := agent.Session("s")
			takeTurn(t, session.Run(t.Context(), "go"), test.end)
			r := onlyResult(t, session)
			if denied := strings.HasPrefix(r.Text, `Denied by "`+test.by+`"`); denied != (test.by != "") || r.IsError != denied {
				t.Errorf("the result is %+v", r)
			}
			if (asked.Load() == 1) != test.asked {
				t.Errorf("somebody was asked %d times", asked.Load())
			}
		})
	}
}

// A resumed call is not judged by hooks again, but by the floor, with the rules
// of today.
//
// SPEC L-01
func TestFloorIsAskedAgainOnResume(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule  string
		today belay.Authorization
		err   error
		want  []string
		end   belay.EndReason
	}{
		{"what was approved runs if the floor still asks", belay.Authorization{Decision: belay.ToolAsk}, nil, []string{"asked ", "asked "}, belay.EndTurn},
		{"what was approved runs if the floor passes it now", belay.Authorization{}, nil, []string{"asked ", "asked "}, belay.EndTurn},
		{"deny wins over the approval", belay.Authorization{Decision: belay.ToolDeny, Reason: "not any more", By: "new rule"}, nil, []string{"asked denied", "asked denied"}, belay.EndTurn},
		{"an error denies", belay.Authorization{}, errors.New("out of order"), []string{"asked denied", "asked denied"}, belay.EndTurn},
		{"halt ends the turn", belay.Authorization{Decision: belay.ToolHalt, Reason: "enough", By: "new rule"}, nil, []string{"asked denied", "asked denied"}, belay.EndBlocked},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			var resumed atomic.Bool
			var judged atomic.Int64
			opts := &belay.Options{
				Tools: []belay.Tool{echoTool("asked")}, OnAsk: belay.AskPark,
				Hooks: []hook.Subscription{belay.ToolPre.On("gate", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
					judged.Add(1)
					return belay.Ask("?"), nil
				}, nil)},
				Authorizer: floorFunc(func(belay.ToolCall) (belay.Authorization, error) {
					if resumed.Load() {
						return test.today, test.err
					}
					return belay.Authorization{}, nil
				}),
			}
			agent, _ := newAgent(t, opts, calls("asked", "asked"))
			session := agent.Session("s")
			parked := takeTurn(t, session.Run(t.Context(), "go"), belay.EndParked)
			for _, a := range parked.Waits {
				settleApproval(t, agent, a.Approval, true)
			}
			resumed.Store(true)
			takeTurn(t, session.Resume(t.Context()), test.end)
			var got []string
			for _, r := range storedResults(t, session) {
				got = append(got, r.Tool+" "+string(r.Class))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the results (-want +got):\n%s", diff)
			}
			if judged.Load() != 2 {
				t.Errorf("hooks judged %d times", judged.Load())
			}
		})
	}
}

// A halt on resume aborts the siblings that have not started, as it does when the
// calls are first judged.
//
// SPEC L-01
func TestHaltOnResumeAbortsTheOthers(t *testing.T) {
	t.Parallel()
	var resumed atomic.Bool
	never := func(context.Context, *belay.Invocation) (belay.Result, error) { panic("it must not run") }
	agent, _ := newAgent(t, &belay.Options{
		Tools: []belay.Tool{anyTool("fine", never, nil), anyTool("bad", never, nil)}, OnAsk: belay.AskPark,
		Hooks: []hook.Subscription{gateOf("gate", belay.Ask("?"))},
		Authorizer: floorFunc(func(call belay.ToolCall) (belay.Authorization, error) {
			if resumed.Load() && call.Tool() == "bad" {
				return belay.Authorization{Decision: belay.ToolHalt, Reason: "enough", By: "guard"}, nil
			}
			return belay.Authorization{}, nil
		}),
	}, calls("fine", "bad", "fine"))
	session := agent.Session("s")
	parked := takeTurn(t, session.Run(t.Context(), "go"), belay.EndParked)
	settleApproval(t, agent, parked.Waits[0].Approval, true)
	settleApproval(t, agent, parked.Waits[1].Approval, true)
	resumed.Store(true)
	all := takeTurn(t, session.Resume(t.Context()), belay.EndBlocked)
	if all.By != "guard" || all.Why != "enough" {
		t.Errorf("the turn was ended by %q: %q", all.By, all.Why)
	}
	var got []string
	for _, r := range storedResults(t, session) {
		got = append(got, r.Tool+" "+string(r.Class))
	}
	if diff := cmp.Diff([]string{"fine aborted", "bad denied", "fine aborted"}, got); diff != "" {
		t.Errorf("the results (-want +got):\n%s", diff)
	}
}
