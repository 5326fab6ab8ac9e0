package chat

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// A question names the subagent that asks. The chat distinguishes calls of a parent and its
// child that have the same id.
func TestSubagentsAreShown(t *testing.T) {
	t.Parallel()
	b := begun(t)
	parents := &belay.CallPart{ID: "call_1", Tool: "invoke_subagent", Input: json.RawMessage(`{"name":"scout"}`)}
	childs := &belay.CallPart{ID: "call_1", Tool: "shell", Input: json.RawMessage(`{"command":"make"}`)}
	below := func(e belay.Event) { e.Run, e.Depth, e.Agent = "r1", 1, "scout"; b.event(e) }
	b.event(belay.Event{Kind: belay.EventToolUse, Call: parents})
	below(belay.Event{Kind: belay.EventSubagentInvoked, Text: "scout", Subagent: &belay.SubagentEvent{Name: "scout", Prompt: "look"}})
	below(belay.Event{Kind: belay.EventToolUse, Call: childs})
	reply := make(chan belay.Decision, 1)
	b.send(askMsg{question: belay.Question{
		Approval: belay.Approval{ID: "ap-1", Call: "call_1", Tool: "shell", Reason: "it builds", By: "zone"},
		Input:    childs.Input, Agent: "scout", Run: "r1", Depth: 2,
	}, reply: reply})
	shows(t, "the view", b.view(), "Allow shell to run for subagent scout, 2 deep?")
	for _, c := range b.m.calls {
		if c.waits != (c.run == "r1") {
			t.Errorf("the call of run %q waits: %t", c.run, c.waits)
		}
	}
	below(belay.Event{Kind: belay.EventToolUseResult, Call: childs, Result: &belay.Result{Text: "built"}})
	below(belay.Event{Kind: belay.EventError, Text: "the model is busy", Retry: true})
	below(belay.Event{Kind: belay.EventSubagentCompleted, Text: "scout", Subagent: &belay.SubagentEvent{Name: "scout", Status: belay.ChildFailed, Message: "it gave up"}})
	b.event(belay.Event{Kind: belay.EventToolUseResult, Call: parents, Result: &belay.Result{Text: "it gave up", IsError: true}})
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "↳ subagent scout", "scout: the model is busy", "subagent scout: error: it gave up", "✗ invoke_subagent", "✓ scout: shell")
}

// The chat reports an unknown /name, and sends the message unchanged.
func TestAMisspeltNameIsTold(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.keys("/hlep me", "enter")
	shows(t, "the scrollback", strings.Join(b.printed, "\n"), "did you mean /help?")
	if got := b.did[len(b.did)-1]; got != "run /hlep me" {
		t.Errorf("the host was asked to %q, want the message as it is", got)
	}
}
