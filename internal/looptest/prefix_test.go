package looptest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// chatter returns hooks that add text at many phases.
func chatter() []hook.Subscription {
	n := 0
	number := func() string {
		n++
		return fmt.Sprint(n)
	}
	return []hook.Subscription{
		belay.SessionStart.On("start", func(context.Context, belay.SessionOpened) (belay.Aside, error) {
			return belay.Aside{Context: belay.Tell("start " + number())}, nil
		}, nil),
		tells("submit", "", belay.Tell("the same in every turn")...),
		belay.TurnPrePromptContext.On("context", func(context.Context, belay.TurnSoFar) (belay.PromptContext, error) {
			return belay.PromptContext{Entries: []belay.ContextEntry{{Text: "context " + number()}}}, nil
		}, nil),
		belay.TurnPrePromptCompile.On("section", func(context.Context, belay.TurnSoFar) (belay.PromptSections, error) {
			return belay.PromptSections{Sections: []belay.PromptSection{{ID: "rules", Body: "Be kind."}}}, nil
		}, nil),
		belay.ModelPost.On("model", func(context.Context, belay.ModelResponse) (belay.Note, error) {
			return belay.Note{Output: "model " + number()}, nil
		}, nil),
		belay.ToolPre.On("gate", func(_ context.Context, c belay.ToolCall) (belay.ToolVerdict, error) {
			if c.Tool() == "denied" {
				return belay.Deny("no"), nil
			}
			return belay.RewriteInput(map[string]string{"n": number()})
		}, &hook.Options{Capabilities: hook.CanRewriteInput | hook.CanBlock}),
		belay.ToolPost.On("result", func(context.Context, belay.ToolResult) (belay.ToolReaction, error) {
			r := belay.RewriteResult("rewritten " + number())
			r.Context = belay.Tell("tool " + number())
			return r, nil
		}, &hook.Options{Capabilities: hook.CanRewriteOutput | hook.CanAddContext}),
		belay.TurnStop.On("stop", func(_ context.Context, s belay.StopAttempt) (belay.StopVerdict, error) {
			if s.Continuations() > 0 {
				return belay.StopVerdict{}, nil
			}
			return belay.Continue("once more"), nil
		}, nil),
		belay.TurnPostTurn.On("end", func(context.Context, belay.TurnEnded) (belay.Note, error) {
			return belay.Note{Output: "end " + number()}, nil
		}, nil),
	}
}

// SPEC R-01: each request of a session begins with the previous request, whatever hooks
// add. So the provider can use its cache.
func TestRequestsExtendEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const turns = 30
		var steps []scripted.Step
		for i := range turns {
			steps = append(steps,
				scripted.Step{Text: "let me see", Calls: []scripted.Call{{Tool: "echo"}, {Tool: "denied"}, {Tool: "nothere"}}},
				scripted.Step{Fault: &scripted.Fault{Kind: belay.ModelOverloaded}},
				says(fmt.Sprint("answer ", i)), says(fmt.Sprint("more of answer ", i)))
		}
		store := memstore.New(nil)
		model := scriptOf(steps...)
		opts := &belay.Options{
			Store: store, Instructions: "You are a test.", Tools: []belay.Tool{echoTool("echo"), echoTool("denied")}, Hooks: chatter(),
		}
		s := agentOf(t, model, opts).Session("s")
		for i := range turns {
			if i == turns/2 { // another process continues the session
				store.Expire("s")
				s = agentOf(t, model, opts).Session("s")
			}
			say(t, s, fmt.Sprint("question ", i))
		}
		requests := model.Requests()
		if len(requests) != 4*turns || requests[0].System == "" || len(requests[0].Tools) != 2 {
			t.Fatalf("there were %d requests, with the prompt %q", len(requests), requests[0].System)
		}
		wantExtends(t, requests)
		wantAnswered(t, requests)
	})
}

// SPEC: ephemeral reminders and the standing reminder are in the last message of
// a request. Without that message, each request begins with the previous request.
func TestEphemeralSitsLast(t *testing.T) {
	t.Parallel()
	var steps []scripted.Step
	for range 10 {
		steps = append(steps, calls("echo"), says("one"))
	}
	model := scriptOf(steps...)
	n := 0
	s := agentOf(t, model, &belay.Options{
		Tools: []belay.Tool{echoTool("echo")},
		Hooks: []hook.Subscription{belay.ModelPre.On("pre", func(context.Context, belay.ModelRequest) (belay.Aside, error) {
			n++
			return belay.Aside{Context: []belay.Reminder{{Text: fmt.Sprint("clock ", n), Ephemeral: true}, {Text: fmt.Sprint("kept ", n)}}}, nil
		}, nil)},
	}).Session("s")
	if err := s.SetReminders(t.Context(), belay.ReminderSettings{Standing: "stand"}); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		say(t, s, "a")
	}
	requests := model.Requests()
	for i := range requests {
		wantOutline(t, requests[i].Messages[len(requests[i].Messages)-2:], fmt.Sprintf("reminder: kept %d", i+1), fmt.Sprintf("reminder: clock %d | stand", i+1))
		requests[i].Messages = requests[i].Messages[:len(requests[i].Messages)-1]
	}
	wantExtends(t, requests)
}

// SPEC L-06: after a summary, each request begins with the previous request again.
func TestRequestsExtendAfterCompaction(t *testing.T) {
	t.Parallel()
	model := scriptOf(
		counted("one", belay.Usage{In: 900}), says("gist"), calls("echo"), says("two"), calls("echo"), says("three"))
	s := agentOf(t, model, &belay.Options{Tools: []belay.Tool{echoTool("echo")}, Compaction: belay.Compaction{Window: 1000}}).Session("s")
	for range 3 {
		say(t, s, "a")
	}
	wantExtends(t, model.Requests()[2:])
}
