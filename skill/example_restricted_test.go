package skill_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/skill"
)

// An agent can be restricted to some skills, by name, id or pattern. Its subagents are
// restricted too.
func Example_restricted() {
	model := scripted.New([]scripted.Step{{Text: "Done."}}, nil)
	catalog := skill.NewCatalog(context.Background(), skill.Values(
		skill.Skill{Name: "deploy", Description: "How we deploy.", Body: "With make release."},
		skill.Skill{Name: "review-api", Description: "How we review APIs.", Body: "Names first."},
		skill.Skill{Name: "vault", Description: "Where the keys are.", Body: "In the vault."},
	))
	// docs:begin restricted
	skills := must(skill.New(catalog, nil))
	agent := must(belay.New(model, &belay.Options{
		Extensions: []belay.Extension{skills},
		Resources:  map[string][]string{"skills": {"deploy", "review-*"}},
	}))
	for _, n := range agent.TypedNames() {
		fmt.Println("/" + n.Name)
	}
	_, err := belay.New(model, &belay.Options{Extensions: []belay.Extension{skills}, Resources: map[string][]string{"skill": {"deploy"}}})
	fmt.Println(err)
	// docs:end restricted

	// Output:
	// /deploy
	// /review-api
	// new agent: resources: no extension enforces the kind "skill" (did you mean "skills"?): known kinds are "skills"
}
