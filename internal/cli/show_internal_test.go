package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
)

// injector adds a part before each message, as a skill does.
type injector struct{}

func (injector) Name() string { return "injector" }

func (injector) Expand(_ context.Context, in belay.Submission) (belay.Expansion, error) {
	if !strings.Contains(in.Text, "skilled") {
		return belay.Expansion{}, nil
	}
	return belay.Expansion{Injected: []belay.Injection{
		{Parts: []belay.Part{belay.Text("from an extension")}},
		{Parts: []belay.Part{belay.Text("from a skill")}, IsSkillInjection: true},
	}}, nil
}

// SPEC L-09
func TestShowTellsMessagesApart(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	echo := belay.NewTool("echo", "Says it again.", func(_ context.Context, in struct {
		Text string `json:"text"`
	},
	) (string, error) {
		return in.Text, nil
	}, nil)
	agent := d.agent([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "echo", Input: `{"text": "psst"}`}}},
		{Text: "Said."},
		{Text: "The sum of it."},
		{Text: "Again."},
	}, belay.Options{
		Tools:      []belay.Tool{echo},
		Extensions: []belay.Extension{injector{}},
		Hooks: []hook.Subscription{
			belay.UserPromptSubmit.On("polite", func(_ context.Context, p belay.UserPrompt) (belay.PromptVerdict, error) {
				if strings.HasPrefix(p.Text(), "oi") {
					return belay.RewritePrompt("please " + strings.TrimPrefix(p.Text(), "oi ")), nil
				}
				return belay.PromptVerdict{}, nil
			}, &hook.Options{Capabilities: hook.CanRewritePrompt}),
			belay.ToolPre.On("loud", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
				return belay.RewriteInput(map[string]string{"text": "HELLO"})
			}, &hook.Options{Capabilities: hook.CanRewriteInput}),
			belay.ToolPost.On("remember", func(context.Context, belay.ToolResult) (belay.ToolReaction, error) {
				return belay.ToolReaction{Aside: belay.Aside{Context: belay.Tell("mind the noise")}}, nil
			}, nil),
		},
	})
	session := agent.Session("mixed")
	if _, err := session.Turn(t.Context(), "oi skilled echo"); err != nil {
		t.Fatal(err)
	}
	if err := session.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := session.Turn(t.Context(), "once more"); err != nil {
		t.Fatal(err)
	}
	d.must("show", "mixed")
	contains(t, d.out.String(),
		" injected\n     from an extension\n",
		" injected (by a skill)\n     from a skill\n",
		" user (rewritten)\n     typed: oi skilled echo\n     please skilled echo\n",
		"     → echo {\"text\":\"HELLO\"}\n       rewritten by loud; asked for: {\"text\":\"psst\"}\n",
		" results\n     ← echo\n       HELLO\n",
		" reminder\n     <system-reminder>\n     mind the noise\n",
		" compaction (the model sees this summary instead of the earlier messages)\n",
		"The sum of it.",
		" user\n     once more\n",
		" assistant scripted/script\n     Again.\n",
	)
	d.must("show", "mixed", "--json")
	contains(t, d.out.String(), `"pre_modified_text":"oi skilled echo"`, `"is_skill_injection":true`, `"is_compaction":true`, `"is_reminder":true`)
}
