package looptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// SPEC T-06
func TestInterceptorsNestAroundTheTool(t *testing.T) {
	t.Parallel()
	var d diary
	around := func(name, tool string) belay.Interceptor {
		return belay.Interceptor{
			Name: name, Tool: tool,
			Before: func(context.Context, *belay.Invocation) (belay.Interception, error) {
				d.notef("before %s", name)
				return belay.Interception{}, nil
			},
			After: func(_ context.Context, _ *belay.Invocation, r belay.Result) (belay.Result, error) {
				d.notef("after %s", name)
				return r, nil
			},
		}
	}
	agent, _ := newAgent(t, &belay.Options{
		Tools:        []belay.Tool{echoTool("echo"), echoTool("other")},
		Interceptors: []belay.Interceptor{around("echo-1", "echo"), around("all-1", "*"), around("other", "other"), around("echo-2", "echo"), around("all-2", "*")},
	}, calls("echo"))
	takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
	want := []string{
		"before all-1", "before all-2", "before echo-1", "before echo-2",
		"after echo-2", "after echo-1", "after all-2", "after all-1",
	}
	if diff := cmp.Diff(want, d.all()); diff != "" {
		t.Errorf("the order (-want +got):\n%s", diff)
	}
}

// SPEC T-06
func TestInterceptorBefore(t *testing.T) {
	t.Parallel()
	type before = func(context.Context, *belay.Invocation) (belay.Interception, error)
	const instead = "\nDo not repeat this call. Reach the goal in another way, or tell the user what you need."
	for _, test := range []struct {
		rule   string
		before before
		want   belay.Result
		ran    bool
	}{
		{"it inspects", func(context.Context, *belay.Invocation) (belay.Interception, error) {
			return belay.Interception{}, nil
		}, belay.Result{Text: `{"a":1}`}, true},
		{"it rewrites", func(context.Context, *belay.Invocation) (belay.Interception, error) {
			return belay.Interception{Input: json.RawMessage(`{"a":2}`)}, nil
		}, belay.Result{Text: `{"a":2}`}, true},
		{"it cannot rewrite but by saying so", func(_ context.Context, call *belay.Invocation) (belay.Interception, error) {
			call.Input[5] = '9'
			call.Input = json.RawMessage(`{"a":3}`)
			call.Tool = "other"
			return belay.Interception{}, nil
		}, belay.Result{Text: `{"a":1}`}, true},
		{"it vetoes", func(context.Context, *belay.Invocation) (belay.Interception, error) {
			return belay.Interception{Deny: "no"}, nil
		}, belay.Failed(belay.ClassDenied, `Denied by "in": no`+instead), false},
		{"a veto outweighs an answer", func(context.Context, *belay.Invocation) (belay.Interception, error) {
			return belay.Interception{Deny: "no", Result: &belay.Result{Text: "yes"}}, nil
		}, belay.Failed(belay.ClassDenied, `Denied by "in": no`+instead), false},
		{"it answers in the tool's place", func(context.Context, *belay.Invocation) (belay.Interception, error) {
			return belay.Interception{Result: &belay.Result{Text: "from the cache", Render: json.RawMessage(`1`)}}, nil
		}, belay.Result{Text: "from the cache", Render: json.RawMessage(`1`)}, false},
		{"it answers with a failure, which gets a class", func(context.Context, *belay.Invocation) (belay.Interception, error) {
			return belay.Interception{Result: &belay.Result{Text: "no", IsError: true}}, nil
		}, belay.Failed(belay.ClassFailed, "no"), false},
		{"an error refuses", func(context.Context, *belay.Invocation) (belay.Interception, error) {
			return belay.Interception{Result: &belay.Result{Text: "yes"}}, errors.New("out of order")
		}, belay.Failed(belay.ClassDenied, `Denied by "in": the interceptor failed: out of order`+instead), false},
		{
			"a panic refuses", func(context.Context, *belay.Invocation) (belay.Interception, error) { panic("oh no") },
			belay.Failed(belay.ClassDenied, `Denied by "belay": panic while checking the call: oh no`+instead), false,
		},
		{"an input that is no JSON refuses", func(context.Context, *belay.Invocation) (belay.Interception, error) {
			return belay.Interception{Input: json.RawMessage(`{`)}, nil
		}, belay.Failed(belay.ClassDenied, `Denied by "in": the interceptor failed: the rewritten input is not JSON`+instead), false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			var d diary
			tool := anyTool("echo", func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
				d.notef("ran")
				return belay.Result{Text: string(call.Input)}, nil
			}, nil)
			agent, _ := newAgent(t, &belay.Options{
				Tools: []belay.Tool{tool}, Interceptors: []belay.Interceptor{{Name: "in", Tool: "echo", Before: test.before}},
			}, callWith("echo", `{"a":1}`))
			session := agent.Session("s")
			takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
			if diff := cmp.Diff(test.want, onlyResult(t, session).Result); diff != "" {
				t.Errorf("the result (-want +got):\n%s", diff)
			}
			if ran := len(d.all()) > 0; ran != test.ran {
				t.Errorf("the tool ran: %t", ran)
			}
			if got := string(storedCalls(t, session)[0].Input); got != `{"a":1}` {
				t.Errorf("the model's own input is %s", got)
			}
		})
	}
}

// SPEC T-06
func TestInterceptorAfter(t *testing.T) {
	t.Parallel()
	type after = func(context.Context, *belay.Invocation, belay.Result) (belay.Result, error)
	for _, test := range []struct {
		rule  string
		after after
		want  belay.Result
	}{
		{"it inspects", func(_ context.Context, _ *belay.Invocation, r belay.Result) (belay.Result, error) { return r, nil }, belay.Result{Text: "{}"}},
		{"it rewrites", func(_ context.Context, _ *belay.Invocation, r belay.Result) (belay.Result, error) {
			return belay.Result{Text: "not " + r.Text, Render: json.RawMessage(`{}`)}, nil
		}, belay.Result{Text: "not {}", Render: json.RawMessage(`{}`)}},
		{"it makes it a failure, which gets a class", func(_ context.Context, _ *belay.Invocation, r belay.Result) (belay.Result, error) {
			r.IsError = true
			return r, nil
		}, belay.Failed(belay.ClassFailed, "{}")},
		{"an error withholds the result", func(_ context.Context, _ *belay.Invocation, r belay.Result) (belay.Result, error) {
			return r, errors.New("out of order")
		}, belay.Failed(belay.ClassFailed, "[result withheld: interceptor in failed: out of order]")},
		{
			"a panic withholds the result", func(context.Context, *belay.Invocation, belay.Result) (belay.Result, error) { panic("oh no") },
			belay.Failed(belay.ClassFailed, "panic while running the call: oh no"),
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			agent, _ := newAgent(t, &belay.Options{
				Tools: []belay.Tool{echoTool("echo")}, Interceptors: []belay.Interceptor{{Name: "in", Tool: "*", After: test.after}},
			}, calls("echo"))
			session := agent.Session("s")
			all := takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
			if diff := cmp.Diff(test.want, onlyResult(t, session).Result); diff != "" {
				t.Errorf("the result (-want +got):\n%s", diff)
			}
			if told := all.of(belay.EventToolUseResult); len(told) != 1 || told[0].Result.Text != test.want.Text {
				t.Errorf("%d result events were sent", len(told))
			}
		})
	}
}

// An input from an interceptor is checked like an input from the model.
//
// SPEC T-06
func TestInterceptorIsNoWayAroundTheFloor(t *testing.T) {
	t.Parallel()
	agent, _ := newAgent(t, &belay.Options{
		Tools: []belay.Tool{anyTool("rm", func(context.Context, *belay.Invocation) (belay.Result, error) { panic("it must not run") }, nil)},
		Interceptors: []belay.Interceptor{{Name: "in", Tool: "rm", Before: func(context.Context, *belay.Invocation) (belay.Interception, error) {
			return belay.Interception{Input: json.RawMessage(`{"path":"/"}`)}, nil
		}}},
		Hooks: []hook.Subscription{gateOf("gate", belay.Pass)},
		Authorizer: floorFunc(func(call belay.ToolCall) (belay.Authorization, error) {
			if string(call.Input()) == `{"path":"/"}` {
				return belay.Authorization{Decision: belay.ToolDeny, Reason: "not that", By: "guard"}, nil
			}
			return belay.Authorization{}, nil
		}),
	}, callWith("rm", `{"path":"/tmp/x"}`))
	session := agent.Session("s")
	takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
	if r := onlyResult(t, session); r.Class != belay.ClassDenied {
		t.Errorf("the result is %+v", r)
	}
}

// SPEC T-06
func TestInterceptorNeedsANameAndATool(t *testing.T) {
	t.Parallel()
	for _, in := range []belay.Interceptor{{Name: "x"}, {Tool: "*"}, {}} {
		model := responding(doneResponse())
		if _, err := belay.New(model, &belay.Options{Interceptors: []belay.Interceptor{in}}); err == nil {
			t.Errorf("%+v was taken", in)
		}
	}
}
