package memory_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/memory"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/subagent"
)

// With Options.Subagent, the subagent has the four tools and the agent has none. The
// subagent sees the memories of the turn that called it, with the same access.
//
// SPEC E-08
func TestToolsOfASubagent(t *testing.T) {
	t.Parallel()
	ann := memory.Scope{Kind: memory.User, Name: "ann"}
	forgets := scripted.Step{Compute: func(_ context.Context, req *belay.Request) (scripted.Step, error) { // forgets the memory that the search found
		for _, m := range req.Messages {
			for _, p := range m.Parts {
				if p.Result == nil {
					continue
				}
				if _, id, ok := strings.Cut(p.Result.Text, `<memory id="`); ok {
					id, _, _ = strings.Cut(id, `"`)
					return call(memory.ForgetTool, `{"id": "`+id+`"}`), nil
				}
			}
		}
		return scripted.Step{}, errors.New("nothing was found")
	}}
	for _, test := range []struct {
		rule, text string
		readOnly   bool
		child      []scripted.Step
		want       []string // results of the child's tool calls
		told       string   // the result that the agent gets
		left       []string
	}{
		{
			"a turn that may do all", "Hello.", false,
			[]scripted.Step{call(memory.SearchTool, `{"query": "colour"}`), call(memory.RememberTool, `{"text": "Ann has a cat.", "scope": "agent"}`), {Text: "Green."}},
			[]string{"The favourite colour is green.", "Remembered as m-"},
			"Green.",
			[]string{"Ann has a cat.", "The favourite colour is green."},
		},
		{
			"a turn that may not write", "Don't remember this.", false,
			[]scripted.Step{call(memory.SearchTool, `{"query": "colour"}`), call(memory.RememberTool, `{"text": "Ann has a cat."}`), {Text: "Green."}},
			[]string{"The favourite colour is green.", "memory_remember is not allowed in this turn"},
			"Green.",
			[]string{"The favourite colour is green."},
		},
		{
			"a turn that may not read", "Without your memory, please.", false,
			[]scripted.Step{call(memory.SearchTool, `{"query": "colour"}`), call(memory.LookupTool, `{"id": "m-x"}`), {Text: "I may not look."}},
			[]string{"memory_search is not allowed in this turn", "memory_get is not allowed in this turn"},
			"I may not look.",
			[]string{"The favourite colour is green."},
		},
		{
			"an extension that only reads", "Hello.", true,
			[]scripted.Step{call(memory.SearchTool, `{"query": "colour"}`), call(memory.RememberTool, `{"text": "Ann has a cat."}`), forgets, {Text: "Green."}},
			[]string{"The favourite colour is green.", "memory_remember is not allowed in this turn", "memory_forget is not allowed in this turn"},
			"Green.",
			[]string{"The favourite colour is green."},
		},
		{"a turn that may do neither", "Don't remember this, and do not use your memory.", false, nil, nil, "the user or a policy does not allow memories in this turn", []string{"The favourite colour is green."}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			memories, sessions := newStore(t), newSessions(t)
			add(t, memories, memory.Draft{Text: "The favourite colour is green.", Scope: ann})
			extension, err := memory.New(memories, &memory.Options{Subagent: "archivist", User: sessionUser, ReadOnly: test.readOnly})
			if err != nil {
				t.Fatal(err)
			}
			child := scripted.New(test.child, nil)
			subagents, err := subagent.New(&subagent.Options{Subagents: []subagent.Subagent{{
				Name: "archivist", Description: "Keeps notes.", Factory: subagent.Agent(child, &belay.Options{Tools: extension.SubagentTools()}),
			}}})
			if err != nil {
				t.Fatal(err)
			}
			main := scripted.New([]scripted.Step{call("invoke_subagent", `{"name": "archivist", "prompt": "Which colour?"}`), {Text: "Good."}}, nil)
			agent, err := belay.New(main, &belay.Options{Store: sessions, Extensions: []belay.Extension{extension, subagents}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = agent.Close(context.WithoutCancel(t.Context())) }()
			if _, err := agent.Session("ann").Turn(t.Context(), test.text); err != nil {
				t.Fatal(err)
			}
			request := main.Requests()[1]
			if slices.ContainsFunc(request.Tools, func(d belay.ToolDeclaration) bool { return strings.HasPrefix(d.Name, "memory_") }) {
				t.Error("the agent has the tools, want that only the subagent has")
			}
			if got := strings.Contains(request.System, `subagent "archivist"`); got != (test.child != nil) {
				t.Errorf("the prompt tells of the subagent: %t\n%s", got, request.System)
			}
			if result := request.Messages[len(request.Messages)-1].Parts[0].Result; !strings.Contains(result.Text, test.told) {
				t.Errorf("the agent was told %q, want %q in it", result.Text, test.told)
			}
			for i, want := range test.want {
				messages := child.Requests()[i+1].Messages
				if got := messages[len(messages)-1].Parts[0].Result.Text; !strings.Contains(got, want) {
					t.Errorf("the child's call %d answers %q, want %q in it", i+1, got, want)
				}
			}
			wantTexts(t, "remembered", texts(t, memories, memory.Active), test.left...)
			for _, m := range all(t, memories, memory.Filter{}) {
				if m.Text == "Ann has a cat." && (m.Scope.String() != "agent:main/ann" || m.Session != "ann") {
					t.Errorf("the child remembered %+v, want it for the agent that asked, from its session", m)
				}
			}
			// The subagent has ended, so it has no access any more.
			for _, session := range []string{"ann/1.1.x", "ann", "elsewhere/1"} {
				result, err := extension.SubagentTools()[0].Call(t.Context(), &belay.Invocation{Tool: memory.SearchTool, Input: []byte(`{"query": "colour"}`), Session: session})
				if err != nil || result.Class != belay.ClassDenied || strings.Contains(result.Text, "green") {
					t.Errorf("a call of session %q, which nobody asked for: %+v, %v, want that it is denied", session, result, err)
				}
			}
		})
	}
}

// A call waits for a person. Another agent on the same files resumes the turn and makes the
// call.
func TestToolAfterResuming(t *testing.T) {
	t.Parallel()
	memories, sessions := newStore(t), newSessions(t)
	ask := belay.ToolPre.On("ask", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return belay.Ask("may it?"), nil },
		&hook.Options{Match: hook.Match{Tools: []string{memory.RememberTool}}})
	opts := belay.Options{Hooks: []hook.Subscription{ask}, OnAsk: belay.AskPark}
	steps := []scripted.Step{call(memory.RememberTool, `{"text": "Ann has a cat."}`), {Text: "Good."}}
	first := newAgent(t, memories, sessions, memory.Options{}, opts, steps[0])
	turn := says(t, first, "one", "Note it.")
	if turn.Reason != belay.EndParked || len(turn.Waits) != 1 {
		t.Fatalf("the turn ended %s, want parked", turn.Reason)
	}
	if err := first.Session("one").Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := newAgent(t, memories, sessions, memory.Options{}, opts, steps[1])
	approval := turn.Waits[0].Approval
	if _, err := second.Decide(t.Context(), belay.Decision{Approval: approval.ID, Hash: approval.Hash, Allow: true, By: "Ann"}); err != nil {
		t.Fatal(err)
	}
	if turn := second.Take(func(ctx context.Context) seq { return second.Session("one").Resume(ctx) }); turn.Reason != belay.EndTurn {
		t.Errorf("the resumed turn ended %s", turn.Reason)
	}
	wantTexts(t, "remembered", texts(t, memories), "Ann has a cat.")
}
