package looptest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// Gates, the floor and the person who approves see the input that the tool gets. Defaults
// are filled in before the first check, and again after a rewrite. A null that counts as
// absent is removed. Values of type json.RawMessage keep their exact bytes.
//
// SPEC T-15, T-07
func TestDefaultsAreFilledBeforeJudging(t *testing.T) {
	t.Parallel()
	type in struct {
		Raw   json.RawMessage `json:"raw,omitempty"`
		Limit int             `json:"limit,omitempty" default:"10"`
		Deep  bool            `json:"deep,omitempty" default:"true"`
	}
	for _, test := range []struct {
		rule, sent, rewritten string
		want                  string
		final                 bool
		by                    []string
	}{
		{"absent", `{"raw":{"b":1, "a":"<"}}`, "", `{"raw":{"b":1, "a":"<"},"limit":10,"deep":true}`, true, nil},
		{"null", `{"limit":5,"deep":null}`, "", `{"limit":5,"deep":true}`, true, nil},
		{"null without a default", `{"raw":null,"limit":5, "deep":true}`, "", `{"limit":5, "deep":true}`, true, nil},
		{"null in a rewritten input", `{}`, `{"limit":7,"deep":false,"raw":null}`, `{"limit":7,"deep":false}`, true, []string{"rewriter"}},
		{"nothing to fill in", `{"limit":5,"deep":false}`, "", `{"limit":5,"deep":false}`, false, nil},
		{"rewritten", `{}`, `{"limit":7}`, `{"limit":7,"deep":true}`, true, []string{"rewriter"}},
	} {
		for _, mode := range []string{"at once", "parked"} {
			t.Run(test.rule+" "+mode, func(t *testing.T) {
				t.Parallel()
				var d diary
				see := func(who string, input json.RawMessage) { d.notef("%s %s", who, input) }
				tool := belay.NewTool("act", "acts", func(ctx context.Context, in in) (string, error) {
					see("tool", belay.CallOf(ctx).Input)
					return fmt.Sprint(in.Limit, in.Deep), nil
				}, nil)
				verdict := belay.Pass
				if mode == "parked" {
					verdict = belay.Ask("it acts")
				}
				hooks := []hook.Subscription{belay.ToolPre.On("gate", func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
					see("gate", call.Input())
					return verdict, nil
				}, nil)}
				if test.rewritten != "" {
					hooks = append(hooks, belay.ToolPre.On("rewriter", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
						return belay.ToolVerdict{Input: json.RawMessage(test.rewritten)}, nil
					}, &hook.Options{Capabilities: hook.CanRewriteInput}))
				}
				floor := floorFunc(func(call belay.ToolCall) (belay.Authorization, error) {
					see("floor", call.Input())
					return belay.Authorization{}, nil
				})
				agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{tool}, Hooks: hooks, Authorizer: floor, OnAsk: belay.AskPark}, callWith("act", test.sent))
				session := agent.Session("s")
				want := []string{"gate " + test.want, "floor " + test.want}
				if mode == "parked" {
					parked := takeTurn(t, session.Run(t.Context(), "go"), belay.EndParked)
					if string(parked.Waits[0].Input) != test.want {
						t.Errorf("the question is about %s", parked.Waits[0].Input)
					}
					settleApproval(t, agent, parked.Waits[0].Approval, true)
					takeTurn(t, session.Resume(t.Context()), belay.EndTurn)
					want = append(want, "floor "+test.want)
				} else {
					takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
				}
				if diff := cmp.Diff(append(want, "tool "+test.want), d.all()); diff != "" {
					t.Errorf("who saw what (-want +got):\n%s", diff)
				}
				for m, err := range session.Messages(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					for _, c := range m.Calls() {
						if string(c.Input) != test.sent || (c.Final != nil) != test.final || test.final && string(c.Final) != test.want || !cmp.Equal(c.RewrittenBy, test.by) {
							t.Errorf("the transcript has %s, %s by %v", c.Input, c.Final, c.RewrittenBy)
						}
					}
				}
			})
		}
	}
}
