package looptest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/store/memstore"
)

// A serial call is a barrier: it waits for all calls before it, and all calls after it
// wait for it. This also holds if one of these calls waits for approval or is parked. The
// calls after the barrier have not begun when the turn parks. They run in call order when
// the turn is resumed.
//
// SPEC T-03, L-01
func TestParkingKeepsTheOrderOfSerialCalls(t *testing.T) {
	t.Parallel()
	serial := &belay.ToolTraits{Serial: true}
	for name, test := range map[string]struct {
		calls         []string
		first, second []string // calls that run before the turn parks, and after it is resumed
	}{
		"a serial call that is asked about holds up all behind it": {
			[]string{"look", "shell?", "write", "look"}, []string{"look"}, []string{"shell?", "write", "look"},
		},
		"a serial call waits for a parallel one that is asked about": {
			[]string{"send?", "look", "write"}, []string{"look"}, []string{"send?", "write"},
		},
		"parallel calls do not wait for each other": {
			[]string{"send?", "look"}, []string{"look"}, []string{"send?"},
		},
		"a serial call that its tool parks holds up all behind it": {
			[]string{"mail", "write"}, []string{"mail"}, []string{"mail", "write"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var d diary
			tool := func(name string, traits *belay.ToolTraits) belay.Tool {
				return anyTool(name, func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
					d.notef("%s", name)
					if name == "mail" && call.Wait == "" {
						return belay.Result{}, belay.Park("the mail")
					}
					return belay.Result{Text: name}, nil
				}, traits)
			}
			ask := belay.ToolPre.On("ask", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
				return belay.Ask("sure?"), nil
			}, &hook.Options{Match: hook.Match{Tools: []string{"shell_asked", "send_asked"}}})
			asked := map[string]string{"shell?": "shell_asked", "send?": "send_asked"}
			var names []string
			for _, c := range test.calls {
				if a, ok := asked[c]; ok {
					c = a
				}
				names = append(names, c)
			}
			store := memstore.New(nil)
			opts := &belay.Options{OnAsk: belay.AskPark, Store: store, Hooks: []hook.Subscription{ask}, Tools: []belay.Tool{
				tool("look", nil), tool("send_asked", nil), tool("shell_asked", serial), tool("write", serial), tool("mail", serial),
			}}
			agent, _ := newAgent(t, opts, calls(names...))
			session := agent.Session("s")
			parked := takeTurn(t, session.Run(t.Context(), "go"), belay.EndParked)
			translate := func(ran []string) []string {
				var all []string
				for _, r := range ran {
					for short, long := range asked {
						if r == long {
							r = short
						}
					}
					all = append(all, r)
				}
				return all
			}
			ran := translate(d.all())
			if diff := cmp.Diff(test.first, ran); diff != "" {
				t.Errorf("before it parks (-want +got):\n%s", diff)
			}
			held, err := store.Open(t.Context(), "s") // a parked turn does not hold the session
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range held.Calls {
				if c.State == belay.CallStarted {
					t.Errorf("call %d, %s, is on record as started, and nothing runs", i, c.Tool)
				}
			}
			if err := store.Release(t.Context(), "s", held.Epoch); err != nil {
				t.Fatal(err)
			}
			for _, w := range parked.Waits {
				if w.Wait == "" {
					settleAs(t, agent, w.Approval, true)
				}
			}
			takeTurn(t, session.Resume(t.Context()), belay.EndTurn)
			if diff := cmp.Diff(test.second, translate(d.all())[len(ran):]); diff != "" {
				t.Errorf("when it goes on (-want +got):\n%s", diff)
			}
			for i, r := range storedResults(t, session) {
				if r.IsError || r.Tool != names[i] {
					t.Errorf("result %d is %+v", i, r)
				}
			}
		})
	}
}

// If the model's answer is cut off, a diagnostic says so.
//
// SPEC L-05
func TestAnswerThatIsCutOff(t *testing.T) {
	t.Parallel()
	cut := says("half an ans")
	cut.Stop = belay.StopMaxTokens
	agent, _ := newAgent(t, nil, cut)
	turn, err := agent.Session("s").Turn(t.Context(), "go")
	if err != nil || turn.Reason != belay.EndTurn {
		t.Fatalf("the turn ended %s: %v", turn.Reason, err)
	}
	if len(turn.Diagnostics) != 1 || turn.Diagnostics[0].Code != codes.AnswerCut || turn.Diagnostics[0].Level != codes.LevelWarn {
		t.Errorf("the diagnostics are %v", turn.Diagnostics)
	}
}

// If there is nothing to resume, there is no turn and so no end event.
//
// SPEC L-08
func TestNothingToResumeIsNoTurn(t *testing.T) {
	t.Parallel()
	agent, _ := newAgent(t, nil)
	for event, err := range agent.Session("s").Resume(t.Context()) {
		if err == nil {
			t.Errorf("there is an event %s", event.Kind)
		} else if !errors.Is(err, belay.ErrNoTurn) {
			t.Errorf("the error is %v", err)
		}
	}
}
