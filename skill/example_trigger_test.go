package skill_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay/skill"
)

// A trigger makes a skill active for a turn. Match returns the active skills and the
// reason.
func ExampleCatalog_Match() {
	ctx := context.Background()
	// docs:begin trigger
	deploy := skill.Skill{
		Name: "deploy", Priority: 10,
		Body:     "This is a {{language}} service. Deploy it with make release, and nothing else.",
		Triggers: []skill.Trigger{{Pattern: "deploy"}, {Type: skill.Regex, Pattern: `roll(ing)?\s+out`}},
	}
	review := skill.Skill{Name: "review", Body: "Read the tests first.", Triggers: []skill.Trigger{{Pattern: "pull request"}}}
	catalog := skill.NewCatalog(ctx, skill.Values(deploy, review))

	for _, m := range catalog.Match("We are rolling  out the fix. skill:review it first.", "main") {
		fmt.Printf("%s: %q\n", m.Skill.Name, m.Found)
	}
	// docs:end trigger
	fmt.Println(skill.Variables{Language: "Go"}.Expand(deploy.Body))
	// Output:
	// deploy: "rolling  out"
	// review: "skill:review"
	// This is a Go service. Deploy it with make release, and nothing else.
}
