package skill_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/skill"
)

// SPEC K-15
func TestASkillIsFoundByItsID(t *testing.T) {
	t.Parallel()
	catalog := catalogOf(
		t, skill.Skill{Name: "deploy", ID: "ops-deploy", Description: "x", Body: "Deploy.", Sections: []skill.Section{{Name: "more", Text: "More."}}},
		skill.Skill{Name: "tidy", ID: "acme/tidy", Description: "x", Body: "Tidy."},
	)
	for key, name := range map[string]string{"deploy": "deploy", "ops-deploy": "deploy", "tidy": "tidy", "acme/tidy": "tidy"} {
		if s, ok := catalog.Lookup(key); !ok || s.Name != name {
			t.Errorf("Lookup(%q) = %+v, %v, want %s", key, s, ok, name)
		}
		if r, err := catalog.Read(t.Context(), key, ""); err != nil || r.Name != name {
			t.Errorf("Read(%q) = %+v, %v, want %s", key, r, err, name)
		}
	}
	if r, err := catalog.Read(t.Context(), "ops-deploy", "more"); err != nil || r.Text != "More." {
		t.Errorf("a section by the id of its skill: %+v, %v", r, err)
	}
	if _, ok := catalog.Lookup("acme"); ok {
		t.Error("a part of an id is no id")
	}
	if _, err := catalog.Read(t.Context(), "ops", ""); !errors.Is(err, skill.ErrNotFound) {
		t.Errorf("error = %v, want that there is none", err)
	}
	lease, err := catalog.Add(skill.Skill{Name: "late", ID: "later", Body: "Late."})
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := catalog.Lookup("later"); !ok || s.Name != "late" {
		t.Errorf("what was added is not found by its id: %+v", s)
	}
	if err := lease.Close(); err != nil {
		t.Fatal(err)
	}
	if _, ok := catalog.Lookup("later"); ok {
		t.Error("what was removed is found by its id")
	}
}

// If a name equals the id of another skill, the name wins, and the clash is reported.
//
// SPEC K-15
func TestANameIsFoundBeforeAnID(t *testing.T) {
	t.Parallel()
	catalog := skill.NewCatalog(t.Context(), skill.Values(
		skill.Skill{Name: "one", ID: "two", Description: "x", Body: "One."}, skill.Skill{Name: "two", ID: "three", Description: "x", Body: "Two."},
	))
	if s, ok := catalog.Lookup("two"); !ok || s.Name != "two" {
		t.Errorf("Lookup = %+v, want the skill of that name", s)
	}
	wants(t, "problems", told("", catalog.Problems()), []string{`values in Go: the id "two" is also the name of another skill`})
	if got := ids(catalog.Match("skill:two", "main")); !slices.Equal(got, []string{"two"}) {
		t.Errorf("skill:ID activates %q, want what has that id", got)
	}
	agent := agentWith(t, extensionOf(t, catalog, nil), scripted.Step{Text: "done"})
	if got := injected(agent.Say("/two").Requests[0].Messages); len(got) != 1 || !strings.Contains(got[0], "Two.") {
		t.Errorf("/two puts %q in front", got)
	}
}

// injected returns the texts that skills have added before a message.
func injected(messages []*belay.Message) []string {
	var texts []string
	for _, m := range messages {
		if m.IsSkillInjection {
			texts = append(texts, m.Text())
		}
	}
	return texts
}

// /id works like /name.
//
// SPEC K-15, K-02
func TestAnIDIsTypedAsANameIs(t *testing.T) {
	t.Parallel()
	var uses []skill.Use
	catalog := skill.NewCatalog(t.Context(), skill.Values(
		skill.Skill{Name: "plain", ID: "id-plain", Description: "x", Body: "Plain $ARGUMENTS."},
		skill.Skill{Name: "no token", ID: "id-token", Description: "x", Body: "Tokens."},
		skill.Skill{Name: "computed", ID: "id-computed", Description: "x", Exposed: true, Handler: func(_ context.Context, use *skill.Use) ([]belay.Part, error) {
			uses = append(uses, *use)
			return []belay.Part{belay.Text("Computed.")}, nil
		}},
		skill.Skill{Name: "active", ID: "id-active", Description: "x", Body: "Active.", Triggers: []skill.Trigger{{Pattern: "task"}}},
		skill.Skill{Name: "theirs", ID: "id-theirs", Description: "x", Body: "Theirs.", Agents: []string{"other"}},
		skill.Skill{Name: "models", ID: "id-models", Description: "x", Body: "Models.", ModelOnly: true},
	))
	e := extensionOf(t, catalog, &skill.Options{EnforceAllowedTools: true})
	agent := agentWith(t, e, scripted.Step{Text: "done"}, scripted.Step{Text: "done"}, scripted.Step{Text: "done"}, scripted.Step{Text: "done"})

	turn := agent.Say("/id-plain twelve")
	if got := injected(turn.Requests[0].Messages); len(got) != 1 || !strings.Contains(got[0], `<skill name="plain">`) || !strings.Contains(got[0], "Plain twelve.") {
		t.Errorf("the id puts %q in front", got)
	}
	if text := wire(t, &turn.Requests[0]); !strings.Contains(text, "[invoked_extension__skill_id-plain] twelve") {
		t.Errorf("the message has no placeholder: %s", text)
	}
	for _, event := range turn.Events {
		if event.Kind == belay.EventSkillInvoked && event.Invoked.Name != "plain" {
			t.Errorf("the event names %q, want the skill's name", event.Invoked.Name)
		}
	}
	if got := injected(agent.Say("/id-token").Requests[0].Messages); len(got) < 2 || !strings.Contains(got[1], "Tokens.") {
		t.Errorf("an id whose name cannot be typed puts %q in front", got)
	}
	request := agent.Say("/id-computed and /id-active for the task").Requests[0]
	if got := injected(request.Messages); len(got) != 4 || !strings.Contains(got[2], "Computed.") || !strings.Contains(got[3], "Active.") {
		t.Errorf("the ids put %q in front", got)
	}
	if len(uses) != 1 || uses[0].Name != "computed" || uses[0].Source != skill.ByUser {
		t.Errorf("the handler was used as %+v", uses)
	}
	if strings.Contains(request.System, "Active.") {
		t.Error("what was named by its id is added by its trigger again")
	}
	if got := injected(agent.Say("/id-theirs /id-models /acme/tidy").Requests[0].Messages); len(got) != 4 {
		t.Errorf("a skill of another agent's, or for the model alone, can be typed by its id: %q", got[4:])
	}
	typed := make(map[string][]string)
	for _, n := range agent.TypedNames() {
		typed[n.Name] = n.Aliases
	}
	if len(typed) != 4 || !slices.Equal(typed["plain"], []string{"id-plain"}) || typed["id-token"] != nil {
		t.Errorf("the typed names are %v", typed)
	}
}

// SPEC K-15, K-10
func TestAnIDThatIsTypedLimitsTools(t *testing.T) {
	t.Parallel()
	catalog := catalogOf(t, skill.Skill{Name: "reader", ID: "id-reader", Description: "x", Body: "Read.", AllowedTools: []string{"look"}})
	agent := belaytest.New(t, belaytest.Script(belaytest.Calls("write", `{}`), belaytest.Says("done")), &belay.Options{
		Tools: []belay.Tool{belaytest.NewTool("write", "ok")}, Extensions: []belay.Extension{extensionOf(t, catalog, &skill.Options{EnforceAllowedTools: true})},
	})
	if call := agent.Say("/id-reader").Calls()[0]; !call.Result.IsError || !strings.Contains(call.Result.Text, `the skill "reader" is active`) {
		t.Errorf("the call gave %+v, want that the skill limits it", call.Result)
	}
}

// SPEC K-15
func TestTheModelMayNameASkillByItsID(t *testing.T) {
	t.Parallel()
	catalog := catalogOf(
		t, skill.Skill{Name: "plain", ID: "acme/plain", Description: "x", Body: "Plain."},
		skill.Skill{Name: "computed", ID: "acme/computed", Description: "x", Exposed: true, Handler: computed("Computed.")},
	)
	agent := agentWith(
		t, extensionOf(t, catalog, nil),
		belaytest.Calls("read_skill", `{"name":"acme/plain"}`, scripted.Call{Tool: "invoke_skill", Input: `{"name":"acme/computed"}`}), belaytest.Says("done"),
	)
	calls := agent.Say("go").Calls()
	if text := calls[0].Result.Text; !strings.Contains(text, `<skill name="plain">`) {
		t.Errorf("read_skill answers %s", text)
	}
	if text := calls[1].Result.Text; text != `{"skill":"computed","content":"Computed."}` {
		t.Errorf("invoke_skill answers %s", text)
	}
}
