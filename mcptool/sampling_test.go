package mcptool_test

import (
	"context"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/provider/scripted"
)

// asksModel is a tool that asks the model n times, and returns the last answer.
func asksModel(ctx context.Context, r *mcp.CallToolRequest, in words) (string, error) {
	if r.Session.InitializeParams().Capabilities.Sampling == nil { //nolint:staticcheck // this tests it
		return "no sampling", nil
	}
	said := ""
	for range in.N {
		out, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{ //nolint:staticcheck // likewise
			MaxTokens: 1_000_000, SystemPrompt: "be short", Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: in.Text}}}, //nolint:staticcheck // likewise
		})
		if err != nil {
			return "", err
		}
		said = out.Content.(*mcp.TextContent).Text
	}
	return "the model said " + said, nil
}

// A server may ask the agent's model only if its declaration allows it and the user agrees. The
// usage counts as usage of the turn, and the number and the size of requests are limited.
//
// SPEC E-09
func TestSampling(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, input string
		off         bool
		answer      string
		budget      belay.Budget
		want        string
		requests    int // to the model
	}{
		{"the user allows it", `{"n":1,"text":"a joke"}`, false, "yes", belay.Budget{}, "the model said answer 1", 3},
		{"the user does not allow it", `{"n":1,"text":"a joke"}`, false, "no", belay.Budget{}, "the user does not allow it", 2},
		{"it is off by default", `{"n":1,"text":"a joke"}`, true, "yes", belay.Budget{}, "no sampling", 2},
		{"too often", `{"n":11,"text":"a joke"}`, false, "yes", belay.Budget{}, "more than 10 times", 12},
		{"too long", `{"n":1,"text":"` + strings.Repeat("x", 65<<10) + `"}`, false, "yes", belay.Budget{}, "more than 64 KiB", 2},
		{"the budget is used up", `{"n":1,"text":"a joke"}`, false, "yes", belay.Budget{TurnTokens: 1}, "generate: ", 1},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			server := here("s", asksModel)
			server.Sampling = !test.off
			e := open(t, quick(mcptool.Options{}), server)
			steps := []scripted.Step{{Calls: []scripted.Call{{Tool: "s__do", Input: test.input}}}}
			for i := range test.requests - 2 {
				steps = append(steps, scripted.Step{Text: "answer " + string(rune('1'+i)), Usage: belay.Usage{In: 100, Out: 10}})
			}
			steps = append(steps, scripted.Step{Text: "done"})
			model := &listening{Model: scripted.New(steps, nil)}
			p := &person{}
			for range 20 {
				p.answers = append(p.answers, test.answer)
			}
			agent, err := belay.New(model, &belay.Options{Extensions: []belay.Extension{e.Shared()}, Asker: p, Budget: test.budget})
			if err != nil {
				t.Fatal(err)
			}
			turn, _ := agent.Session("s").Turn(t.Context(), "go") // a used budget ends the turn
			got := ""
			for m, err := range agent.Session("s").Messages(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				for _, part := range m.Parts {
					if part.Result != nil {
						got = part.Result.Text
					}
				}
			}
			if !strings.Contains(got, test.want) || len(model.asked) != test.requests {
				t.Errorf("result = %q after %d requests, want %q after %d", got, len(model.asked), test.want, test.requests)
			}
			if test.rule != "the user allows it" {
				return
			}
			if asked := model.asked[1]; asked.MaxTokens != 4096 || len(asked.Messages) != 1 || asked.System != "be short" || len(asked.Tools) > 0 {
				t.Errorf("the model got %+v", asked)
			}
			if len(p.asked) != 1 || !strings.Contains(p.asked[0].Text, "[user] a joke") || turn.Usage.In < 100 {
				t.Errorf("the user was asked %+v, and the usage is %+v", p.asked, turn.Usage)
			}
		})
	}
}
