package looptest_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// skills is an extension that changes the user's text and injects a message before it.
type skills struct{}

func (skills) Name() string { return "skills" }

func (skills) Expand(_ context.Context, in belay.Submission) (belay.Expansion, error) {
	text := in.Text + " [invoked]"
	return belay.Expansion{Text: &text, Injected: []belay.Injection{
		{Parts: []belay.Part{belay.Text("a skill")}, IsSkillInjection: true}, {Parts: []belay.Part{belay.Text("a note")}},
	}}, nil
}

// SPEC L-09: the kind and the flags of a message say where it came from.
func TestMessageKinds(t *testing.T) {
	t.Parallel()
	rewrite := belay.UserPromptSubmit.On("rewrite", func(_ context.Context, p belay.UserPrompt) (belay.PromptVerdict, error) {
		if p.Text() == "typed" {
			return belay.RewritePrompt("rewritten"), nil
		}
		return belay.PromptVerdict{Aside: belay.Aside{Context: belay.Tell("mind")}}, nil
	}, &hook.Options{Capabilities: hook.CanRewritePrompt | hook.CanAddContext})
	more := belay.TurnPrePromptContext.On("ctx", func(context.Context, belay.TurnSoFar) (belay.PromptContext, error) {
		return belay.PromptContext{Entries: []belay.ContextEntry{{Text: "c"}}}, nil
	}, nil)
	model := scriptOf(calls("echo"), says("one"), says("gist"))
	s := agentOf(t, model, &belay.Options{
		Hooks: []hook.Subscription{rewrite, more}, Extensions: []belay.Extension{skills{}}, Tools: []belay.Tool{echoTool("echo")},
	}).Session("s")
	say(t, s, "typed")
	succeeds(t, s.Compact(t.Context()))
	if _, err := s.Turn(t.Context(), "plain"); err == nil {
		t.Fatal("the script is over, and the turn ended well")
	}
	type kind struct {
		Role       belay.Role
		Kind       belay.MessageKind
		Skill      bool
		Compaction bool
		Typed      string
	}
	var got []kind
	for _, m := range transcript(t, s) {
		k := kind{Role: m.Role, Kind: m.Kind, Skill: m.IsSkillInjection, Compaction: m.IsCompaction}
		if m.PreModifiedText != nil {
			k.Typed = *m.PreModifiedText
		}
		got = append(got, k)
	}
	wantEqual(t, "the kinds", got, []kind{
		{Role: "user", Kind: "injected", Skill: true},
		{Role: "user", Kind: "injected"},
		{Role: "user", Kind: "user", Typed: "typed"},
		{Role: "user", Kind: "context"},
		{Role: "assistant", Kind: "assistant"},
		{Role: "user", Kind: "results"},
		{Role: "assistant", Kind: "assistant"},
		{Role: "user", Kind: "compaction", Compaction: true},
		{Role: "user", Kind: "injected", Skill: true},
		{Role: "user", Kind: "injected"},
		{Role: "user", Kind: "user", Typed: "plain"},
		{Role: "user", Kind: "context"},
	})
	if text := transcript(t, s)[2].Text(); text != "rewritten [invoked]" {
		t.Errorf("the rewritten text is %q", text)
	}
	// The reminder is delivered only when a model has answered, so it is sent again.
	wantEqual(t, "the reminders in the request", remindersOf(seen(t, model)), []string{"<system-reminder>\nmind\n</system-reminder>"})
}

// SPEC L-09: if a hook rewrites an empty text, PreModifiedText is the empty text. If no
// hook changes the text, PreModifiedText is nil.
func TestPreModifiedText(t *testing.T) {
	t.Parallel()
	empty := ""
	data, err := json.Marshal(&belay.Message{Role: belay.RoleUser, Kind: belay.KindUser, Parts: []belay.Part{belay.Text("x")}, PreModifiedText: &empty})
	if err != nil {
		t.Fatal(err)
	}
	var back belay.Message
	if err := json.Unmarshal(data, &back); err != nil || back.PreModifiedText == nil || *back.PreModifiedText != "" {
		t.Errorf("%s came back as %+v: %v", data, back.PreModifiedText, err)
	}
	describe := belay.UserPromptSubmit.On("describe", func(_ context.Context, p belay.UserPrompt) (belay.PromptVerdict, error) {
		if p.Text() == "" {
			return belay.RewritePrompt("what is this?"), nil
		}
		return belay.PromptVerdict{}, nil
	}, &hook.Options{Capabilities: hook.CanRewritePrompt})
	agent, _ := newAgent(t, &belay.Options{Hooks: []hook.Subscription{describe}}, says("a cat"))
	pictured := agent.Session("pictured")
	if _, err := pictured.Turn(t.Context(), "", belay.Part{Type: belay.PartMedia, Media: &belay.Media{MIME: "image/png", Data: []byte("png")}}); err != nil {
		t.Fatal(err)
	}
	if m := transcript(t, pictured)[0]; m.Text() != "what is this?" || m.PreModifiedText == nil || *m.PreModifiedText != "" {
		t.Errorf("a message that was rewritten from nothing is %q from %v", m.Text(), m.PreModifiedText)
	}
	s := agent.Session("s")
	say(t, s, "plain")
	if m := transcript(t, s)[0]; m.PreModifiedText != nil {
		t.Errorf("a message that nobody changed has %q", *m.PreModifiedText)
	}
}
