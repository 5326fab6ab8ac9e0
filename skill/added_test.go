package skill_test

import (
	"testing"

	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/skill"
)

// A skills extension can be added to an agent that is in use, and removed again.
//
// SPEC E-11
func TestSkillsAreAddedLater(t *testing.T) {
	t.Parallel()
	agent := belaytest.New(t, belaytest.Script(
		belaytest.Says("hello"), belaytest.Calls("read_skill", `{"name": "brew"}`), belaytest.Says("done"), belaytest.Says("bye"),
	), nil)
	agent.Say("hello").Request(1).Offers()
	dir := write(t, map[string]string{"brew/SKILL.md": "---\nname: brew\ndescription: how to brew tea\n---\nBoil water."})
	skills, err := skill.New(skill.NewCatalog(t.Context(), skill.Dir(dir)), nil)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := agent.Add(t.Context(), skills)
	if err != nil {
		t.Fatal(err)
	}
	agent.Say("tea, please").Result("read_skill", "Boil water.")
	if err := lease.Close(); err != nil {
		t.Fatal(err)
	}
	agent.Say("bye").Request(1).Offers()
}
