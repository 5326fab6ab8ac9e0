package skill_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/belay-run/belay/skill"
)

// Later sources win over earlier ones. Problems of one source do not hide another source.
func ExampleCatalog() {
	ctx := context.Background()
	user := fstest.MapFS{
		"review.md":       {Data: []byte("---\ndescription: How I like reviews.\n---\nBe kind.\n")},
		"broken/SKILL.md": {Data: []byte("---\nname: broken\ntriggers:\n  - type: regex\n    pattern: fix(?=es)\n---\n")},
	}
	project := fstest.MapFS{"review.md": {Data: []byte("---\ndescription: How this team reviews.\n---\nBe thorough.\n")}}

	// docs:begin catalog
	catalog := skill.NewCatalog(ctx, skill.FS("user", user), skill.FS("project", project))
	for _, s := range catalog.List() {
		fmt.Println(s.Name+":", s.Description)
	}
	for _, problem := range catalog.Problems() {
		fmt.Println(problem.Kind, problem.Error())
	}
	lease := must(catalog.Add(skill.Skill{Name: "concise", Body: "Answer in one sentence."}))
	_, err := catalog.Read(ctx, "reviews", "")
	fmt.Println(err)
	fmt.Println(lease.Close(), len(catalog.List())) // it is gone again
	// docs:end catalog

	// Output:
	// review: How this team reviews.
	// not_loaded user/broken/SKILL.md:5: the expression "fix(?=es)" cannot be read: invalid or unsupported Perl syntax: (?= (RE2 does not support look-ahead: match the surrounding text too, use \b for the edge of a word, or write two triggers)
	// shadowed user/review.md: the skill is not used, because the skill from project/review.md has the same name "review"
	// there is no skill "reviews" (did you mean "review"?): not found. Available skills: concise, review
	// <nil> 1
}
