package looptest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// Hooks can only make the floor's decision stricter.
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
		by    string // who denies; empty if the call runs
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

// When a turn is resumed, the floor checks its calls again, with the current rules. Hooks
// do not.
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
		{"what a hook asked about is asked again if the floor asks now", belay.Authorization{Decision: belay.ToolAsk}, nil, nil, belay.EndParked},
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

// If the floor halts a call when the turn is resumed, the other calls that have not
// started are aborted, as after the first check.
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

// The floor checks every call once, with the input that would run, whatever the kind of
// the tool is. If the floor denies a call, the call does not run.
//
// SPEC P-07, T-01
func TestEveryToolPassesTheFloor(t *testing.T) {
	t.Parallel()
	rewriting := func(name, input string) belay.Interceptor {
		return belay.Interceptor{Name: name, Tool: "*", Before: func(context.Context, *belay.Invocation) (belay.Interception, error) {
			return belay.Interception{Input: []byte(input)}, nil
		}}
	}
	for _, test := range []struct {
		rule string
		opts func(ran func(*belay.Invocation)) *belay.Options
		want []string // the inputs that the floor checks, in order
		ran  string   // the calls that run if all checks pass
	}{
		{"a tool made of a Go function", func(ran func(*belay.Invocation)) *belay.Options {
			type in struct {
				N int `json:"n"`
			}
			return &belay.Options{Tools: []belay.Tool{belay.NewTool("act", "acts", func(_ context.Context, in in) (string, error) {
				ran(&belay.Invocation{Input: fmt.Appendf(nil, `{"n":%d}`, in.N)})
				return "", nil
			}, nil)}}
		}, []string{`act {"n":1}`}, `{"n":1}`},
		{"a raw tool", rawTool, []string{`act {"n":1}`}, `{"n":1}`},
		{"a tool that an extension brings", func(ran func(*belay.Invocation)) *belay.Options {
			return &belay.Options{Extensions: []belay.Extension{bringer{rawTool(ran).Tools}}}
		}, []string{`act {"n":1}`}, `{"n":1}`},
		{"a tool of a bundle, which an extension routes", func(ran func(*belay.Invocation)) *belay.Options {
			return &belay.Options{
				Extensions: []belay.Extension{router{ran}},
				Hooks: []hook.Subscription{belay.TurnPreToolMaterialization.On("bundle", func(context.Context, belay.TurnSoFar) (belay.ToolBundles, error) {
					return belay.ToolBundles{Bundles: []belay.ToolBundle{{ID: "b", Route: "router", Tools: []belay.ToolDeclaration{{Name: "act", Description: "acts"}}}}}, nil
				}, nil)},
			}
		}, []string{`act {"n":1}`}, `{"n":1}`},
		{"a call that an interceptor rewrites", func(ran func(*belay.Invocation)) *belay.Options {
			opts := rawTool(ran)
			opts.Interceptors = []belay.Interceptor{rewriting("one", `{"n":2}`), rewriting("two", `{"n":3}`)}
			return opts
		}, []string{`act {"n":3}`}, `{"n":3}`},
		{"a call that a hook rewrites", func(ran func(*belay.Invocation)) *belay.Options {
			opts := rawTool(ran)
			opts.Hooks = []hook.Subscription{rewriterOf("rewriter", `{"n":4}`)}
			return opts
		}, []string{`act {"n":4}`}, `{"n":4}`},
		{"a call that both rewrite", func(ran func(*belay.Invocation)) *belay.Options {
			opts := rawTool(ran)
			opts.Interceptors = []belay.Interceptor{rewriting("one", `{"n":2}`)}
			opts.Hooks = []hook.Subscription{rewriterOf("rewriter", `{"n":4}`)}
			return opts
		}, []string{`act {"n":4}`}, `{"n":4}`},
		{"a call that is approved is judged again when it is resumed, as it was rewritten", func(ran func(*belay.Invocation)) *belay.Options {
			opts := rawTool(ran)
			opts.OnAsk = belay.AskPark
			opts.Hooks = []hook.Subscription{rewriterOf("rewriter", `{"n":4}`), gateOf("gate", belay.Ask("?"))}
			return opts
		}, []string{`act {"n":4}`, `act {"n":4}`}, `{"n":4}`},
		{"a call that its tool parked is judged again when it is resumed", func(ran func(*belay.Invocation)) *belay.Options {
			return &belay.Options{Tools: []belay.Tool{anyTool("act", func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
				if call.Wait == "" {
					return belay.Result{}, belay.Park("later")
				}
				ran(call)
				return belay.Result{}, nil
			}, nil)}}
		}, []string{`act {"n":1}`, `act {"n":1}`}, `{"n":1}`},
		{"a call that an interceptor answers runs nothing, and there is nothing to judge", func(ran func(*belay.Invocation)) *belay.Options {
			opts := rawTool(ran)
			opts.Interceptors = []belay.Interceptor{{Name: "stand-in", Tool: "*", Before: func(context.Context, *belay.Invocation) (belay.Interception, error) {
				return belay.Interception{Result: &belay.Result{Text: "instead"}}, nil
			}}}
			return opts
		}, nil, ""},
	} {
		for denied := range len(test.want) + 1 { // the index of the check that denies; in the last round no check denies
			t.Run(fmt.Sprintf("%s, denied the time %d", test.rule, denied+1), func(t *testing.T) {
				t.Parallel()
				var d diary
				opts := test.opts(func(call *belay.Invocation) { d.notef("ran %s", call.Input) })
				judged := 0
				opts.Authorizer = floorFunc(func(call belay.ToolCall) (belay.Authorization, error) {
					d.notef("%s %s", call.Tool(), call.Input())
					if judged++; judged == denied+1 {
						return belay.Authorization{Decision: belay.ToolDeny, Reason: "no", By: "guard"}, nil
					}
					return belay.Authorization{}, nil
				})
				agent, _ := newAgent(t, opts, callWith("act", `{"n":1}`))
				session := agent.Session("s")
				all := take(session.Run(t.Context(), "go"))
				for all.Reason == belay.EndParked {
					for _, q := range all.Waits {
						if q.Wait == "" {
							settleApproval(t, agent, q.Approval, true)
						}
					}
					all = take(session.Resume(t.Context()))
				}
				want := slices.Clone(test.want)
				if denied < len(want) {
					want = want[:denied+1]
				} else if test.ran != "" {
					want = append(want, "ran "+test.ran)
				}
				if diff := cmp.Diff(want, d.all()); diff != "" {
					t.Errorf("what happened (-want +got):\n%s", diff)
				}
				if r := onlyResult(t, session); r.IsError != (denied < len(test.want)) {
					t.Errorf("the result is %+v", r)
				}
			})
		}
	}
}

// rawTool returns options with a tool that calls ran.
func rawTool(ran func(*belay.Invocation)) *belay.Options {
	return &belay.Options{Tools: []belay.Tool{anyTool("act", func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
		ran(call)
		return belay.Result{}, nil
	}, nil)}}
}

// bringer is an extension that adds tools.
type bringer struct{ tools []belay.Tool }

func (bringer) Name() string          { return "bringer" }
func (b bringer) Tools() []belay.Tool { return b.tools }

// router is an extension that runs the tools of a bundle.
type router struct{ ran func(*belay.Invocation) }

func (router) Name() string { return "router" }

func (r router) Route(_ context.Context, call *belay.Invocation) (belay.Result, error) {
	r.ran(call)
	return belay.Result{}, nil
}
