package looptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/hook/hooktest"
)

var (
	rewritesInput  = &hook.Options{Capabilities: hook.CanRewriteInput | hook.CanBlock}
	rewritesPrompt = &hook.Options{Capabilities: hook.CanRewritePrompt}
	rewritesResult = &hook.Options{Capabilities: hook.CanRewriteOutput | hook.CanAddContext, Failure: hook.Closed}
)

const writeCall = `{"id": "1", "tool": "write", "input": {"path":"a"}}`

// SPEC H-07, H-17
func TestRewritingAToolInputKeepsTheOriginal(t *testing.T) {
	t.Parallel()
	var seen []string
	look := func(call belay.ToolCall) {
		seen = append(seen, string(call.Original())+" is now "+string(call.Input()))
	}
	rewriteTo := func(path string) hook.Handler[belay.ToolCall, belay.ToolVerdict] {
		return func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
			look(call)
			return belay.RewriteInput(map[string]string{"path": path})
		}
	}
	outcome := dispatch(t, belay.ToolPre, inputOf(t, belay.ToolPre, writeCall),
		belay.ToolPre.On("a-gate", func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
			look(call)
			return belay.Pass, nil
		}, nil),
		belay.ToolPre.On("x-first", rewriteTo("b"), rewritesInput),
		belay.ToolPre.On("y-second", rewriteTo("c"), rewritesInput))
	want := []string{
		`{"path":"a"} is now {"path":"a"}`,
		`{"path":"a"} is now {"path":"b"}`,
		`{"path":"a"} is now {"path":"c"}`,
	}
	if !slices.Equal(seen, want) {
		t.Errorf("handlers saw\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
	if !slices.Equal(outcome.Rewriters, []string{"x-first", "y-second"}) {
		t.Errorf("the rewriters are %v", outcome.Rewriters)
	}
	in := outcome.Input
	if string(in.Input()) != `{"path":"c"}` || string(in.Original()) != `{"path":"a"}` || string(outcome.Output.Input) != `{"path":"c"}` {
		t.Errorf("what runs is %s, answered as %s, and was %s", in.Input(), outcome.Output.Input, in.Original())
	}
	if in.ID() != "1" || in.Tool() != "write" || in.Session() != "s" {
		t.Errorf("rewriting changed more than the input: %s", encode(t, in))
	}
	again, err := belay.ToolPre.DecodeInput(testScope, encode(t, in))
	if err != nil || string(again.Original()) != `{"path":"a"}` {
		t.Errorf("on the wire the original is %s, %v", again.Original(), err)
	}
}

// SPEC H-10, H-17
func TestARewrittenInputMustBeJSON(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{`{"path"`, "", "text", `{} {}`, "\x00"} {
		sub := belay.ToolPre.On("rewrite", answering(belay.ToolPre, belay.ToolVerdict{Input: json.RawMessage(bad)}), rewritesInput)
		trial := hooktest.Try(t, belay.ToolPre, sub, hooktest.Input(t, belay.ToolPre, writeCall), nil)
		trial.Code(codes.OutputInvalid)
		trial.Denied("could not decide")
		if got := string(trial.Input.Input()); got != `{"path":"a"}` {
			t.Errorf("rewriting to %q leaves %s", bad, got)
		}
	}
	if _, err := belay.RewriteInput(func() {}); err == nil {
		t.Error("RewriteInput makes an answer of what has no JSON form")
	}
}

// SPEC H-17
func TestRewritingAPrompt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, typed  string
		texts        []string
		text, origin string
	}{
		{"the last one stands", "one", []string{"two", "three"}, "three", "one"},
		{"the empty text counts", "one", []string{""}, "", "one"},
		{"the empty text counts for the next one too", "one", []string{"", "two"}, "two", "one"},
		{"what the user left empty stays empty", "", []string{"two", "three"}, "three", ""},
		{"the same text is a rewriting too", "one", []string{"one"}, "one", "one"},
	} {
		var subs []hook.Subscription
		for i, text := range test.texts {
			subs = append(subs, belay.UserPromptSubmit.On(string(rune('a'+i)), answering(belay.UserPromptSubmit, belay.RewritePrompt(text)), rewritesPrompt))
		}
		var saw string
		subs = append(subs, belay.UserPromptSubmit.On("look", func(_ context.Context, p belay.UserPrompt) (belay.PromptVerdict, error) {
			saw = p.Text()
			return belay.PromptVerdict{}, nil
		}, nil))
		outcome := dispatch(t, belay.UserPromptSubmit, inputOf(t, belay.UserPromptSubmit, string(encode(t, map[string]any{"text": test.typed, "parts": 2}))), subs...)
		in := outcome.Input
		if in.Text() != test.text || in.Original() != test.origin || saw != test.text || in.Parts() != 2 || len(outcome.Rewriters) != len(test.texts) {
			t.Errorf("%s: the text is %q, was %q, and a gate saw %q", test.rule, in.Text(), in.Original(), saw)
		}
		if outcome.Output.Prompt == nil || *outcome.Output.Prompt != test.text {
			t.Errorf("%s: the merged answer does not say so", test.rule)
		}
		again, err := belay.UserPromptSubmit.DecodeInput(testScope, encode(t, in))
		if err != nil || again.Original() != test.origin || again.Text() != test.text {
			t.Errorf("%s: on the wire it is %s", test.rule, encode(t, in))
		}
	}
}

// If several hooks answer instead of the model, the first answer in plan order is used.
//
// SPEC H-17, H-05
func TestTheFirstReplyStands(t *testing.T) {
	t.Parallel()
	opts := &hook.Options{Capabilities: hook.CanAnswer | hook.CanAddContext}
	outcome := dispatch(t, belay.UserPromptSubmit, inputOf(t, belay.UserPromptSubmit, `{"text": "hello"}`),
		belay.UserPromptSubmit.On("c", answering(belay.UserPromptSubmit, belay.AnswerPrompt("from c")), opts),
		belay.UserPromptSubmit.On("b", answering(belay.UserPromptSubmit, belay.AnswerPrompt("")), opts),
		belay.UserPromptSubmit.On("a", answering(belay.UserPromptSubmit, belay.PromptVerdict{Aside: belay.Aside{Context: belay.Tell("a")}}), opts))
	if outcome.Output.Reply == nil || *outcome.Output.Reply != "" {
		t.Errorf("the reply is %v, want the empty one of b", outcome.Output.Reply)
	}
}

const readResult = `{"id": "1", "tool": "read", "input": {}, "text": "token = hunter2"}`

// If a hook that may rewrite a result fails closed, neither later handlers nor the model
// get the result.
//
// SPEC H-10
func TestAFailedRewriterWithholdsTheResult(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule   string
		handle hook.Handler[belay.ToolResult, belay.ToolReaction]
	}{
		{"an error withholds", hooktest.Fails[belay.ToolResult, belay.ToolReaction](errors.New("no"))},
		{"a panic withholds", hooktest.Panics[belay.ToolResult, belay.ToolReaction]("no")},
		{"an answer beyond its capabilities withholds", answering(belay.ToolPost, belay.ToolReaction{Result: new(string), Aside: belay.Aside{Note: belay.Note{Output: "shown"}}})},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			var seen []string
			look := func(_ context.Context, r belay.ToolResult) (belay.ToolReaction, error) {
				seen = append(seen, r.Text())
				return belay.ToolReaction{}, nil
			}
			outcome := dispatch(t, belay.ToolPost, inputOf(t, belay.ToolPost, readResult),
				belay.ToolPost.On("a-redact", test.handle, rewritesResult),
				belay.ToolPost.On("b-rewriter", look, rewritesResult),
				belay.ToolPost.On("c-watcher", look, nil))
			text := outcome.Input.Text()
			if !strings.HasPrefix(text, "[result withheld: ") || strings.Contains(text, "hunter2") {
				t.Errorf("the model would see %q", text)
			}
			if !slices.Equal(seen, []string{text, text}) {
				t.Errorf("later handlers saw %q", seen)
			}
			if outcome.Output.Result == nil || *outcome.Output.Result != text {
				t.Errorf("the merged answer says %v, want what the model would see", outcome.Output.Result)
			}
		})
	}
}

// SPEC H-10
func TestARewriterThatFailsOpenLeavesTheResult(t *testing.T) {
	t.Parallel()
	fails := hooktest.Fails[belay.ToolResult, belay.ToolReaction](errors.New("no"))
	outcome := dispatch(t, belay.ToolPost, inputOf(t, belay.ToolPost, readResult),
		belay.ToolPost.On("redact", fails, &hook.Options{Capabilities: hook.CanRewriteOutput}))
	if got := outcome.Input.Text(); got != "token = hunter2" || len(outcome.Rewriters) > 0 || outcome.Output.Result != nil {
		t.Errorf("the result is %q, want it as it was", got)
	}
	if !slices.Equal(codesOf(outcome.Diagnostics), []codes.Code{codes.Error}) {
		t.Errorf("diagnostics %v, want a warning", outcome.Diagnostics)
	}
	outcome = dispatch(t, belay.ToolPost, inputOf(t, belay.ToolPost, readResult),
		belay.ToolPost.On("redact", fails, &hook.Options{
			Capabilities: hook.CanRewriteOutput, Failure: belay.ToolPost.Fallback(belay.RewriteResult("gone")),
		}))
	if got := outcome.Input.Text(); got != "gone" {
		t.Errorf("with a fallback the result is %q, want that of the fallback", got)
	}
}

// SPEC H-07, H-17
func TestResultsAreRewrittenInOrder(t *testing.T) {
	t.Parallel()
	add := func(s string) hook.Handler[belay.ToolResult, belay.ToolReaction] {
		return func(_ context.Context, r belay.ToolResult) (belay.ToolReaction, error) {
			reaction := belay.RewriteResult(r.Text() + s)
			reaction.Context = belay.Tell("added " + s)
			return reaction, nil
		}
	}
	outcome := dispatch(t, belay.ToolPost, inputOf(t, belay.ToolPost, readResult),
		belay.ToolPost.On("b", add(" b"), rewritesResult), belay.ToolPost.On("a", add(" a"), rewritesResult))
	if got := outcome.Input.Text(); got != "token = hunter2 a b" || *outcome.Output.Result != got {
		t.Errorf("the result is %q", got)
	}
	if len(outcome.Output.Context) != 2 || outcome.Output.Context[0].From != "a" {
		t.Errorf("the reminders are %+v", outcome.Output.Context)
	}
	empty := dispatch(t, belay.ToolPost, inputOf(t, belay.ToolPost, readResult),
		belay.ToolPost.On("a", answering(belay.ToolPost, belay.RewriteResult("")), rewritesResult))
	if got := empty.Input.Text(); got != "" || len(empty.Rewriters) != 1 {
		t.Errorf("rewriting to the empty text leaves %q", got)
	}
}
