package looptest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// shows returns a note whose text is shown to users.
func shows(text string) belay.Note { return belay.Note{Output: text} }

// said describes the events hook_output and turn_continued. For events of the kinds in
// among, it lists only the kind. It leaves out all other events.
func said(all taken, among ...belay.EventKind) []string {
	var words []string
	for _, e := range all.events {
		switch e.Kind {
		case belay.EventHookOutput, belay.EventTurnContinued:
			words = append(words, fmt.Sprintf("%s %d %s: %s", e.Kind, e.Step, e.By, e.Text))
		default:
			for _, kind := range among {
				if kind == e.Kind {
					words = append(words, string(kind))
				}
			}
		}
	}
	return words
}

// The event with a hook's output comes after the event that the output refers to. It does
// not depend on the visibility of the hook's runs.
//
// SPEC L-08
func TestWhatHooksShowIsTold(t *testing.T) {
	t.Parallel()
	opts := &belay.Options{Tools: []belay.Tool{echoTool("echo")}, Hooks: []hook.Subscription{
		belay.SessionStart.On("start", func(context.Context, belay.SessionOpened) (belay.Aside, error) {
			return belay.Aside{Note: shows("good morning")}, nil
		}, nil),
		belay.UserPromptSubmit.On("prompt", func(context.Context, belay.UserPrompt) (belay.PromptVerdict, error) {
			return belay.PromptVerdict{Aside: belay.Aside{Note: shows("a prompt")}}, nil
		}, nil),
		belay.ModelPre.On("ahead", func(context.Context, belay.ModelRequest) (belay.Aside, error) {
			return belay.Aside{Note: shows("a request")}, nil
		}, nil),
		belay.ToolPre.On("gate", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
			return belay.ToolVerdict{Aside: belay.Aside{Note: shows("a call")}}, nil
		}, nil),
		belay.ToolPre.On("would", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
			return belay.ToolVerdict{Aside: belay.Aside{Note: shows("a shadow is not heard")}}, nil
		}, &hook.Options{Shadow: true}),
		belay.ToolPost.On("post", func(context.Context, belay.ToolResult) (belay.ToolReaction, error) {
			return belay.ToolReaction{Aside: belay.Aside{Note: shows("hello people"), Context: belay.Tell("for the model")}}, nil
		}, nil),
		belay.TurnPostTurn.On("end", func(context.Context, belay.TurnEnded) (belay.Note, error) {
			return shows("good night"), nil
		}, nil),
	}}
	agent, model := newAgent(t, opts, calls("echo"), says("done"))
	all := takeTurn(t, agent.Session("s").Run(t.Context(), "a"), belay.EndTurn)
	wantEqual(t, "the events", said(all, belay.EventTurnStart, belay.EventModelResponse, belay.EventToolUse, belay.EventToolUseResult, belay.EventTurnEnd), []string{
		"turn_start", "hook_output 0 start: good morning", "hook_output 0 prompt: a prompt",
		"model_response", "tool_use", "hook_output 1 ahead: a request", "hook_output 1 gate: a call",
		"tool_use_result", "hook_output 1 post: hello people",
		"model_response", "hook_output 2 ahead: a request",
		"hook_output 2 end: good night", "turn_end",
	})
	if told := strings.Join(remindersOf(seen(t, model)), "\n"); !strings.Contains(told, "hello people") || !strings.Contains(told, "for the model") {
		t.Errorf("the model got %q, want the text that is shown to users", told)
	}
}

// If a hook makes a turn continue, an event has the hook's name and reason. If the limit is
// reached, there is a diagnostic.
//
// SPEC L-08
func TestWhoHasATurnGoOnIsTold(t *testing.T) {
	t.Parallel()
	for rule, test := range map[string]struct {
		limit, times int
		want         []string
		spent        bool
	}{
		"once, and then it ends":        {8, 1, []string{"model_response", "turn_continued 1 stopper: not yet", "model_response"}, false},
		"as often as the limit lets it": {2, 9, []string{"model_response", "turn_continued 1 stopper: not yet", "model_response", "turn_continued 2 stopper: not yet", "model_response"}, true},
		"nobody has it go on":           {8, 0, []string{"model_response"}, false},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			agent, _ := newAgent(t, &belay.Options{Limits: belay.Limits{Continuations: test.limit}, Hooks: []hook.Subscription{
				belay.TurnStop.On("stopper", func(_ context.Context, s belay.StopAttempt) (belay.StopVerdict, error) {
					if s.Continuations() >= test.times {
						return belay.StopVerdict{}, nil
					}
					return belay.Continue("not yet"), nil
				}, nil),
			}}, says("one"), says("two"))
			all := takeTurn(t, agent.Session("s").Run(t.Context(), "a"), belay.EndTurn)
			wantEqual(t, "the events", said(all, belay.EventModelResponse), test.want)
			var spent []string
			for _, d := range all.Diagnostics {
				spent = append(spent, d.String())
			}
			var want []string
			if test.spent {
				want = []string{"turn_stop.limit at turn.stop: hooks have made the turn continue 2 times, which is the limit: turn.stop does not fire again"}
			}
			wantEqual(t, "the diagnostics", spent, want)
		})
	}
}
