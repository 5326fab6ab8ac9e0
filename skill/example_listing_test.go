package skill_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay/skill"
)

// A listing has all names first, and then as many descriptions as fit into the budget.
func ExampleListing() {
	catalog := skill.NewCatalog(context.Background(), skill.Values(
		skill.Skill{Name: "deploy", Description: "How we deploy. Use it before anything goes out.", Priority: 10},
		skill.Skill{Name: "review", Description: "How we review changes, and what we look at first."},
		skill.Skill{Name: "style", Description: "How we name things."},
		skill.Skill{Name: "vault", Description: "Where the keys are.", Hidden: true},
	))
	for _, budget := range []int{45, 25} {
		fmt.Println(skill.Listing(catalog.List(), budget))
	}
	// Output:
	// <available_skills>
	// <skill name="deploy">How we deploy. Use it before anything goes out.</skill>
	// <skill name="review" />
	// <skill name="style" />
	// </available_skills>
	// <available_skills>
	// <skill name="deploy" />
	// <!-- 2 more skills omitted -->
	// </available_skills>
}
