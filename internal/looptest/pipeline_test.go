package looptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// recordedPipeline returns options in which every stage of a call writes to the diary.
// The floor asks for approval, and the hook at approval.request leaves the decision to
// the person.
func recordedPipeline(d *diary) *belay.Options {
	interceptor := func(name, tool string) belay.Interceptor {
		return belay.Interceptor{
			Name: name, Tool: tool,
			Before: func(_ context.Context, call *belay.Invocation) (belay.Interception, error) {
				d.notef("%s before %s", name, call.Input)
				return belay.Interception{Input: json.RawMessage(`{"by":"` + name + `"}`)}, nil
			},
			After: func(_ context.Context, call *belay.Invocation, r belay.Result) (belay.Result, error) {
				d.notef("%s after %s: %s", name, call.Input, r.Text)
				r.Text += "+" + name
				return r, nil
			},
		}
	}
	return &belay.Options{
		Tools: []belay.Tool{anyTool("echo", func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
			d.notef("run %s", call.Input)
			return belay.Result{Text: "ran"}, nil
		}, nil)},
		Interceptors: []belay.Interceptor{interceptor("inner", "echo"), interceptor("outer", "*")},
		Hooks: []hook.Subscription{
			belay.ToolPre.On("gate", func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
				d.notef("gate %s was %s", call.Input(), call.Original())
				return belay.Pass, nil
			}, &hook.Options{Priority: -10}),
			belay.ToolPre.On("rewriter", func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
				d.notef("rewriter %s was %s", call.Input(), call.Original())
				return belay.ToolVerdict{Input: json.RawMessage(`{"by":"rewriter"}`)}, nil
			}, &hook.Options{Capabilities: hook.CanRewriteInput}),
			belay.ApprovalRequest.On("auto", func(_ context.Context, asked belay.ApprovalAsked) (belay.ApprovalVerdict, error) {
				d.notef("approval.request %s", asked.Input())
				return belay.ApprovalVerdict{}, nil
			}, nil),
			belay.ApprovalDecided.On("told", func(_ context.Context, o belay.ApprovalOutcome) (belay.Note, error) {
				d.notef("approval.decided %s by %s", o.Decision(), o.By())
				return belay.Note{}, nil
			}, nil),
			belay.ToolPost.On("post", func(_ context.Context, r belay.ToolResult) (belay.ToolReaction, error) {
				d.notef("tool.post %s: %s", r.Input(), r.Text())
				return belay.RewriteResult(r.Text() + "+post"), nil
			}, &hook.Options{Capabilities: hook.CanRewriteOutput}),
		},
		Authorizer: floorFunc(func(call belay.ToolCall) (belay.Authorization, error) {
			d.notef("floor %s was %s", call.Input(), call.Original())
			return belay.Authorization{Decision: belay.ToolAsk, Reason: "new", By: "rule"}, nil
		}),
		Approver: approverFunc(func(_ context.Context, q belay.Question) (belay.Decision, error) {
			d.notef("approver %s", q.Input)
			return belay.Decision{Allow: true, By: "ann"}, nil
		}),
		Store: &watchedStore{memstore.New(nil), func(c *belay.Commit) {
			for _, call := range c.Calls {
				d.notef("stored %s %s", call.State, call.Input)
			}
			for _, m := range c.Messages {
				d.notef("stored %s", m.Kind)
			}
		}},
	}
}

// SPEC T-01
func TestCallGoesThroughThePipelineInOrder(t *testing.T) {
	t.Parallel()
	var d diary
	agent, _ := newAgent(t, recordedPipeline(&d), callWith("echo", `{"by":"model"}`))
	session := agent.Session("s")
	takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
	want := []string{
		"stored user",
		`outer before {"by":"model"}`,
		`inner before {"by":"outer"}`,
		`rewriter {"by":"inner"} was {"by":"model"}`,
		`gate {"by":"rewriter"} was {"by":"model"}`,
		`floor {"by":"rewriter"} was {"by":"model"}`,
		`approval.request {"by":"rewriter"}`,
		`stored parked {"by":"rewriter"}`,
		"stored assistant",
		`approver {"by":"rewriter"}`,
		"approval.decided allow by ann",
		`stored started {"by":"rewriter"}`,
		`run {"by":"rewriter"}`,
		`inner after {"by":"rewriter"}: ran`,
		`outer after {"by":"rewriter"}: ran+inner`,
		`tool.post {"by":"rewriter"}: ran+inner+outer`,
		`stored done {"by":"rewriter"}`,
		"stored results",
		"stored assistant",
	}
	if diff := cmp.Diff(want, d.all()); diff != "" {
		t.Errorf("the order (-want +got):\n%s", diff)
	}
	if got := onlyResult(t, session).Text; got != "ran+inner+outer+post" {
		t.Errorf("the stored result is %q", got)
	}
}

// If nobody is asked, a call takes two commits. The first commit, before the tool runs,
// stores the call as started. The second commit stores the result.
//
// SPEC T-01
func TestIntentIsStoredBeforeTheToolRuns(t *testing.T) {
	t.Parallel()
	var d diary
	opts := recordedPipeline(&d)
	opts.Hooks, opts.Interceptors, opts.Authorizer, opts.Approver = nil, nil, nil, nil
	agent, _ := newAgent(t, opts, calls("echo"))
	takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
	want := []string{
		"stored user",
		"stored started {}", "stored assistant",
		"run {}",
		"stored done {}", "stored results",
		"stored assistant",
	}
	if diff := cmp.Diff(want, d.all()); diff != "" {
		t.Errorf("the order (-want +got):\n%s", diff)
	}
}

// Hooks do not see a call whose tool is unknown, out of scope or gets an invalid input.
// After a denial, later checks do not see the call.
//
// SPEC T-01
func TestStoppedCallGoesNoFurther(t *testing.T) {
	t.Parallel()
	strict := belay.NewTool("strict", "takes a number", func(context.Context, struct {
		N int `json:"n"`
	},
	) (string, error) {
		panic("it must not run")
	}, nil)
	for _, test := range []struct {
		rule   string
		call   scripted.Step
		change func(d *diary, opts *belay.Options)
		class  belay.ResultClass
		last   string // the stage that stops the call
	}{
		{"an unknown tool reaches nobody", calls("nothing"), nil, belay.ClassNotFound, ""},
		{"a tool out of scope reaches nobody", calls("hidden"), nil, belay.ClassScope, ""},
		{"an invalid input reaches nobody", callWith("strict", `{"n":"one"}`), nil, belay.ClassInvalid, ""},
		{"a veto keeps the call from hooks", calls("echo"), func(d *diary, opts *belay.Options) {
			opts.Interceptors[0].Before = func(context.Context, *belay.Invocation) (belay.Interception, error) {
				d.notef("veto")
				return belay.Interception{Deny: "no"}, nil
			}
		}, belay.ClassDenied, "veto"},
		{"a gate's denial keeps the call from the approver and the tool", calls("echo"), func(_ *diary, opts *belay.Options) {
			opts.Hooks = append(opts.Hooks, belay.ToolPre.On("last", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
				return belay.Deny("no"), nil
			}, nil))
		}, belay.ClassDenied, "floor"},
		{"the floor's denial keeps the call from approvers and the tool", calls("echo"), func(d *diary, opts *belay.Options) {
			opts.Authorizer = floorFunc(func(belay.ToolCall) (belay.Authorization, error) {
				d.notef("floor denies")
				return belay.Authorization{Decision: belay.ToolDeny}, nil
			})
		}, belay.ClassDenied, "floor denies"},
		{"an input that is invalid after a rewrite reaches neither floor nor tool", calls("echo"), func(d *diary, opts *belay.Options) {
			opts.Hooks = []hook.Subscription{belay.ToolPre.On("spoiler", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
				d.notef("spoiled")
				return belay.ToolVerdict{Input: json.RawMessage(`["no object"]`)}, nil
			}, &hook.Options{Capabilities: hook.CanRewriteInput})}
		}, belay.ClassInvalid, "spoiled"},
		{"a person's no keeps the call from the tool", calls("echo"), func(_ *diary, opts *belay.Options) {
			opts.Approver = approverFunc(func(context.Context, belay.Question) (belay.Decision, error) {
				return belay.Decision{By: "ann"}, nil
			})
		}, belay.ClassDenied, "approval.decided"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			var d diary
			opts := recordedPipeline(&d)
			opts.Store = nil
			opts.Tools = append(opts.Tools, strict, echoTool("hidden"))
			opts.Scope = []string{"echo", "strict"}
			if test.change != nil {
				test.change(&d, opts)
			}
			agent, model := newAgent(t, opts, test.call)
			session := agent.Session("s")
			takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
			if r := onlyResult(t, session); r.Class != test.class || !r.IsError {
				t.Errorf("the result is of class %q: %s", r.Class, r.Text)
			}
			last := ""
			if entries := d.all(); len(entries) > 0 {
				last = entries[len(entries)-1]
			}
			if !strings.HasPrefix(last, test.last) || test.last == "" && last != "" {
				t.Errorf("the last stage was %q, not %q", last, test.last)
			}
			if model.Left() != 0 {
				t.Error("the turn ended with the call")
			}
		})
	}
}

// SPEC T-05
func TestDenialTellsWhoWhyAndWhatInstead(t *testing.T) {
	t.Parallel()
	const instead = "\nDo not repeat this call. Reach the goal in another way, or tell the user what you need."
	for _, test := range []struct {
		rule string
		opts belay.Options
		want string
	}{
		{
			"a hook's denial names the hook",
			belay.Options{Hooks: []hook.Subscription{gateOf("no-prod", belay.Deny("production is off limits"))}},
			`Denied by "no-prod": production is off limits` + instead,
		},
		{
			"a denial without a reason says so",
			belay.Options{Hooks: []hook.Subscription{gateOf("mute", belay.Deny(" "))}},
			`Denied by "mute": no reason was given` + instead,
		},
		{
			"the model gets the most severe verdict",
			belay.Options{Hooks: []hook.Subscription{
				gateOf("a-asks", belay.Ask("is it fine?")), gateOf("b-denies", belay.Deny("it is not")), gateOf("c-passes", belay.Pass),
			}},
			`Denied by "b-denies": it is not` + instead,
		},
		{
			"a hook that fails is named",
			belay.Options{Hooks: []hook.Subscription{
				belay.ToolPre.On("broken", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
					return belay.Pass, errors.New("out of order")
				}, nil),
			}},
			`Denied by "broken": `,
		},
		{
			"the floor names its guard",
			belay.Options{Authorizer: floorFunc(func(belay.ToolCall) (belay.Authorization, error) {
				return belay.Authorization{Decision: belay.ToolDeny, Reason: "it formats the disk", By: "zone-6"}, nil
			})},
			`Denied by "zone-6": it formats the disk` + instead,
		},
		{
			"a floor without a name is the floor",
			belay.Options{Authorizer: floorFunc(func(belay.ToolCall) (belay.Authorization, error) {
				return belay.Authorization{Decision: belay.ToolDeny, Reason: "no"}, nil
			})},
			`Denied by "floor": no` + instead,
		},
		{
			"an interceptor's veto names it",
			belay.Options{Interceptors: []belay.Interceptor{{
				Name: "quota", Tool: "*", Before: func(context.Context, *belay.Invocation) (belay.Interception, error) {
					return belay.Interception{Deny: "enough for today"}, nil
				},
			}}},
			`Denied by "quota": enough for today` + instead,
		},
		{
			"a person's no names the person",
			belay.Options{
				Hooks: []hook.Subscription{gateOf("ask", belay.Ask("sure?"))},
				Approver: approverFunc(func(context.Context, belay.Question) (belay.Decision, error) {
					return belay.Decision{By: "ann", Reason: "not on a Friday"}, nil
				}),
			},
			`Denied by "ann": not on a Friday` + instead,
		},
		{
			"without an approver the model gets the question",
			belay.Options{Hooks: []hook.Subscription{gateOf("ask", belay.Ask("it deletes files"))}},
			`Denied by "belay": it deletes files (ask asks for approval, but no approver is available)` + instead,
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			var denied diary
			opts := test.opts
			opts.Tools = []belay.Tool{anyTool("echo", func(context.Context, *belay.Invocation) (belay.Result, error) {
				panic("it must not run")
			}, nil)}
			opts.Hooks = append(opts.Hooks, belay.ToolDenied.On("told", func(_ context.Context, c belay.DeniedCall) (belay.Note, error) {
				denied.notef("%s %s %s", c.ID(), c.Tool(), c.By())
				return belay.Note{}, nil
			}, nil))
			agent, model := newAgent(t, &opts, calls("echo"))
			session := agent.Session("s")
			takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
			r := onlyResult(t, session)
			if !strings.HasPrefix(r.Text, test.want) || !strings.HasSuffix(r.Text, instead) || r.Class != belay.ClassDenied || !r.IsError {
				t.Errorf("the result is %+v, not %q", r, test.want)
			}
			sent := model.Requests()[1].Messages
			if last := sent[len(sent)-1]; last.Kind != belay.KindResults || last.Parts[0].Result.Text != r.Text {
				t.Errorf("the model got %+v", last)
			}
			by, _, _ := strings.Cut(strings.TrimPrefix(r.Text, `Denied by "`), `"`)
			if diff := cmp.Diff([]string{"call_1 echo " + by}, denied.all()); diff != "" {
				t.Errorf("tool.denied (-want +got):\n%s", diff)
			}
		})
	}
}

// SPEC T-07
func TestRewrittenInputIsKeptBesideTheOriginal(t *testing.T) {
	t.Parallel()
	opts := &belay.Options{
		Tools: []belay.Tool{echoTool("echo")},
		Interceptors: []belay.Interceptor{{
			Name: "first", Tool: "*", Before: func(context.Context, *belay.Invocation) (belay.Interception, error) {
				return belay.Interception{Input: json.RawMessage(`{"step":1}`)}, nil
			},
		}},
		Hooks: []hook.Subscription{rewriterOf("r3", `{"step":3}`), rewriterOf("r2", `{"step":2}`)},
	}
	agent, model := newAgent(t, opts, callWith("echo", `{"step":0}`))
	session := agent.Session("s")
	takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)

	want := &belay.CallPart{
		ID: "call_1", Tool: "echo", Input: json.RawMessage(`{"step":0}`), Final: json.RawMessage(`{"step":3}`), RewrittenBy: []string{"first", "r2", "r3"},
	}
	if diff := cmp.Diff([]*belay.CallPart{want}, storedCalls(t, session)); diff != "" {
		t.Errorf("the stored call (-want +got):\n%s", diff)
	}
	if got := onlyResult(t, session).Text; got != `{"step":3}` {
		t.Errorf("the tool ran with %s", got)
	}
	for _, m := range model.Requests()[1].Messages {
		for _, c := range m.Calls() {
			if string(c.Input) != `{"step":0}` {
				t.Errorf("the model is shown %s for its own input", c.Input)
			}
		}
	}
}

// SPEC T-07
func TestInputThatNobodyRewroteHasNoOther(t *testing.T) {
	t.Parallel()
	agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{echoTool("echo")}, Hooks: []hook.Subscription{gateOf("gate", belay.Pass)}}, callWith("echo", `{"a":1}`))
	session := agent.Session("s")
	takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
	if diff := cmp.Diff([]*belay.CallPart{{ID: "call_1", Tool: "echo", Input: json.RawMessage(`{"a":1}`)}}, storedCalls(t, session)); diff != "" {
		t.Errorf("the stored call (-want +got):\n%s", diff)
	}
}

// SPEC T-07
func TestRewrittenInputIsValidatedAgain(t *testing.T) {
	t.Parallel()
	strict := belay.NewTool("strict", "takes a number", func(context.Context, struct {
		N int `json:"n"`
	},
	) (string, error) {
		panic("it must not run")
	}, nil)
	const spoiled = `{"n":"many","m":1}`
	interceptor := belay.Interceptor{Name: "spoiler", Tool: "strict", Before: func(context.Context, *belay.Invocation) (belay.Interception, error) {
		return belay.Interception{Input: json.RawMessage(spoiled)}, nil
	}}
	gate := belay.ToolPre.On("gate", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
		t.Error("a gate was asked about an input that does not fit the schema")
		return belay.Pass, nil
	}, nil)
	for by, opts := range map[string]*belay.Options{
		"by a hook":                          {Hooks: []hook.Subscription{rewriterOf("spoiler", spoiled), gate}},
		"by an interceptor":                  {Interceptors: []belay.Interceptor{interceptor}, Hooks: []hook.Subscription{gate}},
		"by an interceptor where no hook is": {Interceptors: []belay.Interceptor{interceptor}},
	} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			opts.Tools = []belay.Tool{strict}
			agent, _ := newAgent(t, opts, callWith("strict", `{"n":1}`))
			session := agent.Session("s")
			takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
			r := onlyResult(t, session)
			if r.Class != belay.ClassInvalid || !strings.Contains(r.Text, "\n- /n: ") || !strings.Contains(r.Text, "\n- /m: ") || !strings.Contains(r.Text, "spoiler rewrote") {
				t.Errorf("the result is %+v", r)
			}
			if c := storedCalls(t, session)[0]; string(c.Input) != `{"n":1}` || string(c.Final) != spoiled {
				t.Errorf("the stored call is %+v", c)
			}
		})
	}
}

// A tool may change its input without changing the transcript, which has its own copy.
//
// SPEC T-07
func TestToolCannotChangeTheTranscript(t *testing.T) {
	t.Parallel()
	scribbler := anyTool("scribble", func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
		for i := range call.Input {
			call.Input[i] = 'x'
		}
		return belay.Result{Text: "ok"}, nil
	}, nil)
	agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{scribbler}}, callWith("scribble", `{"a":1}`))
	session := agent.Session("s")
	takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
	if got := string(storedCalls(t, session)[0].Input); got != `{"a":1}` {
		t.Errorf("the stored input is %s", got)
	}
}
