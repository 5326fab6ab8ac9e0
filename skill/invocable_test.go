package skill_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/skill"
)

// SPEC K-06: disable-model-invocation and user-invocable, which are fields of other
// programs, define who may use a skill.
func TestWhoMayUseASkill(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"deploy/SKILL.md": md("name: deploy", "description: deploys", "disable-model-invocation: true"),
		"style/SKILL.md":  md("name: style", "description: house style", "user-invocable: false"),
		"both/SKILL.md":   md("name: both", "description: for all", "user-invocable: true", "disable-model-invocation: false"),
		"odd/SKILL.md":    md("name: odd", "description: odd", "disable-model-invocation: perhaps"),
		"none/SKILL.md":   md("name: none", "description: for nobody", "disable-model-invocation: true", "user-invocable: false"),
	})
	catalog := skill.NewCatalog(t.Context(), skill.Dir(dir))
	wants(t, "problems", told(dir, catalog.Problems()), []string{
		"none/SKILL.md:5: neither the model nor users can use the skill", "odd/SKILL.md:4: disable-model-invocation is neither true nor false",
	})
	e := extensionOf(t, catalog, nil)
	agent := agentWith(t, e, scripted.Step{Calls: []scripted.Call{{Tool: "read_skill", Input: map[string]string{"name": "deploy"}}, {Tool: "read_skill", Input: map[string]string{"name": "style"}}}}, scripted.Step{Text: "done"})
	turn := agent.Say("go /style /deploy now")
	request := &turn.Requests[0]
	listing, _ := declared(request, "read_skill")
	if strings.Contains(listing, "deploy") || !strings.Contains(listing, "style") || !strings.Contains(listing, "both") {
		t.Errorf("the model sees %s", listing)
	}
	sent := wire(t, request)
	if !strings.Contains(sent, "invoked_extension__skill_deploy") || !strings.Contains(sent, "/style") {
		t.Errorf("the request is %s, want /deploy bound and /style left alone", sent)
	}
	results := wire(t, &turn.Requests[1])
	if !strings.Contains(results, `there is no skill \"deploy\"`) && !strings.Contains(results, `there is no skill \\\"deploy\\\"`) {
		t.Errorf("the model could read what only users may use: %s", results)
	}
	var typed []string
	for _, n := range e.TypedNames("main") {
		typed = append(typed, n.Name)
	}
	if got := strings.Join(typed, " "); got != "both deploy" {
		t.Errorf("users can type %s", got)
	}
}

// SPEC K-03: the model gets no tool for a computed skill that only users may use.
func TestAComputedSkillForUsersAlone(t *testing.T) {
	t.Parallel()
	handler := func(context.Context, *skill.Use) ([]belay.Part, error) {
		return []belay.Part{belay.Text("computed")}, nil
	}
	e := extensionOf(t, catalogOf(t, skill.Skill{Name: "now", Handler: handler, Exposed: true, UserOnly: true}), nil)
	if tools := e.StepTools("main"); len(tools) > 0 {
		t.Errorf("there is a tool %q for it", tools[0].Declaration().Name)
	}
}

// SPEC K-03: the model gets no tool to read skills if it may read none of them. A hidden skill is
// not listed, but the model may read it.
func TestSkillsForUsersAlone(t *testing.T) {
	t.Parallel()
	for rule, test := range map[string]struct {
		one  skill.Skill
		want int
	}{
		"only users may use it":      {skill.Skill{Name: "deploy", Description: "deploys", Body: "Deploy.", UserOnly: true}, 0},
		"a hidden skill can be read": {skill.Skill{Name: "deploy", Description: "deploys", Body: "Deploy.", Hidden: true}, 1},
	} {
		e := extensionOf(t, catalogOf(t, test.one), nil)
		if tools := e.StepTools("main"); len(tools) != test.want {
			t.Errorf("%s: there are %d tools, want %d", rule, len(tools), test.want)
		}
	}
}

// SPEC K-02: the text after the name replaces $ARGUMENTS.
func TestArguments(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, body, typed, want string
		triggers                []skill.Trigger
	}{
		{"as typed", "Fix issue $ARGUMENTS now.", "/fix 12 and 13", "Fix issue 12 and 13 now.", nil},
		{"every one", "$ARGUMENTS, $ARGUMENTS", "/fix  x ", "x, x", nil},
		{"nothing typed", "Fix [$ARGUMENTS].", "/fix", "Fix [].", nil},
		{"behind the name alone", "Fix $ARGUMENTS.", "please /fix that", "Fix that.", nil},
		{"no placeholder", "Fix it.", "/fix 12", "Fix it.", nil},
		{"each its own", "<$ARGUMENTS>", "/fix a /fix b", "<a /fix b>", nil},
		{"what stands for something is not looked through again", "$ARGUMENTS in {{agent_id}}", "/fix {{mode}} $ARGUMENTS", "{{mode}} $ARGUMENTS in main", []skill.Trigger{{Pattern: "zzz"}}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			catalog := catalogOf(t, skill.Skill{Name: "fix", Description: "fixes", Body: test.body, Triggers: test.triggers})
			agent := agentWith(t, extensionOf(t, catalog, &skill.Options{Mode: "strict"}), scripted.Step{Text: "done"})
			turn := agent.Say(test.typed)
			var injected string
			for _, m := range turn.Requests[0].Messages {
				if m.IsSkillInjection {
					injected = m.Text()
					break
				}
			}
			if !strings.Contains(injected, "<content>\n"+test.want+"\n</content>") {
				t.Errorf("%q puts %s in front, want %s", test.typed, injected, test.want)
			}
		})
	}
}

// SPEC K-08: texts of skills do not take the space of other prompt sections.
func TestActiveSkillsLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	var skills []skill.Skill
	for i := range 20 {
		skills = append(skills, skill.Skill{
			Name: fmt.Sprintf("s%02d", i), Priority: -i, Description: "x", Body: strings.Repeat(fmt.Sprintf("%02d ", i), 500), Triggers: []skill.Trigger{{Type: skill.Keyword, Pattern: "task"}},
		})
	}
	rules := strings.Repeat("the operator's rule. ", 350) // 7,350 characters
	section := func(id string) hook.Subscription {
		return belay.TurnPrePromptCompile.On(id, func(context.Context, belay.TurnSoFar) (belay.PromptSections, error) {
			return belay.PromptSections{Sections: []belay.PromptSection{{ID: id, Title: id, Body: rules + "end of " + id}}}, nil
		}, &hook.Options{Priority: 1000})
	}
	agent := belaytest.New(t, belaytest.Script(scripted.Step{Text: "done"}), &belay.Options{
		Extensions: []belay.Extension{extensionOf(t, catalogOf(t, skills...), nil)},
		Hooks:      []hook.Subscription{section("zz.rules")},
	})
	turn := agent.Say("do the task")
	system := turn.Requests[0].System
	if !strings.Contains(system, "end of zz.rules") {
		t.Error("the operator's section was pushed out or cut")
	}
	if got := strings.Count(system, "Skill: s"); got == 0 || got > 8 {
		t.Errorf("%d skills are in the prompt", got)
	}
	if n := len(system) - len(rules); n > 9000 {
		t.Errorf("skills took %d characters, want at most 8,000", n)
	}
	if !strings.Contains(system, "Skill: s00") || strings.Contains(system, "Skill: s19") {
		t.Error("the skills of the highest priority come first")
	}
}
