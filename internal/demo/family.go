package demo

import (
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/subagent"
)

// family shows three things that a user can type: the name of a skill, a text with the
// trigger of a skill, and a task for a subagent. A hook of the parent denies a call of the
// subagent.
func (t *Tour) family(ctx context.Context) {
	t.Heading("What users type: /concise is a skill, the word release makes another one active, and a hook of the parent also applies to a subagent")
	catalog := skill.NewCatalog(ctx, skill.Values(
		skill.Skill{Name: "concise", Description: "Answers briefly.", Body: "Answer in one sentence."},
		skill.Skill{Name: "release", Body: "Releases of {{project_name}} are reviewed first.", Triggers: []skill.Trigger{{Pattern: "release"}}},
	))
	skills, err := skill.New(catalog, &skill.Options{Project: t.root.Name()})
	if t.Failed(err) {
		return
	}
	child := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "write", Input: `{"path":"/srv/www/REVIEW.md","text":"fine"}`}}},
		{Text: "The changelog is fine. I could not write the review where it is served."},
	}, &scripted.Options{Name: "demo/reviewer"})
	subagents, err := subagent.New(&subagent.Options{Subagents: []subagent.Subagent{{
		Name: "reviewer", Description: "Reviews a release.",
		Factory: subagent.Agent(child, &belay.Options{Tools: tools(t.root, nil)}),
	}}})
	if t.Failed(err) {
		return
	}
	parent := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: subagent.InvokeTool, Input: `{"name":"reviewer","prompt":"Review CHANGELOG.md."}`}}},
		{Text: "Release 1.2 is reviewed."},
	}, &scripted.Options{Name: "demo/parent"})
	agent, err := belay.New(parent, &belay.Options{
		Store: t.store, Extensions: []belay.Extension{skills, subagents},
		Hooks: []hook.Subscription{belay.ToolPre.On("stay-inside", stayInside, &hook.Options{Match: hook.Match{Tools: []string{"write"}}})},
	})
	if t.Failed(err) {
		return
	}
	defer func() { t.Failed(agent.Close(context.WithoutCancel(ctx))) }()
	t.Sayf("  user      /concise Is the release ready?")
	for event, err := range agent.Session("family").Run(ctx, "/concise Is the release ready?") {
		if t.Failed(err) {
			return
		}
		t.tellFamily(&event)
	}
	if requests := parent.Requests(); len(requests) > 0 {
		first := requests[0]
		_, section, _ := strings.Cut(first.System, "## Skill: release\n\n")
		t.Sayf("  the model was sent the skill in front of the message, %q in its place, and the section %q",
			strings.Fields(first.Messages[len(first.Messages)-1].Text())[0], strings.TrimSpace(section))
	}
}

func (t *Tour) tellFamily(e *belay.Event) {
	who := ""
	if e.Depth > 0 {
		who = e.Agent + ": "
	}
	switch e.Kind { //nolint:exhaustive // the others are not told here
	case belay.EventSkillInvoked:
		t.Sayf("  skill     %s, by the %s", e.Invoked.Name, e.Invoked.Source)
	case belay.EventSubagentInvoked:
		t.Sayf("  subagent  %s begins: %s", e.Subagent.Name, e.Subagent.Prompt)
	case belay.EventSubagentCompleted:
		t.Sayf("  subagent  %s ends: %s", e.Subagent.Name, e.Subagent.Status)
	case belay.EventToolUseResult:
		line, _, _ := strings.Cut(e.Result.Text, "\n")
		t.Sayf("  %-9s %s%s: %s", resultWord(e.Result), who, e.Call.Tool, line)
	case belay.EventModelResponse:
		if text := e.Message.Text(); text != "" {
			t.Sayf("  %-9s %s%s", "model", who, text)
		}
	}
}

func resultWord(r *belay.Result) string {
	if r.IsError {
		return fmt.Sprint(r.Class)
	}
	return "result"
}
