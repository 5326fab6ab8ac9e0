package skill_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay/skill"
)

// docs:begin source

// Wiki is a source of skills that are pages. Their names are listed often, and their
// texts are read when they are needed.
type Wiki struct {
	pages  map[string]string
	listed []*skill.Skill
}

// List returns the same skills again as long as nothing has changed.
func (w *Wiki) List(context.Context) ([]*skill.Skill, error) {
	if w.listed == nil {
		for title := range w.pages {
			w.listed = append(w.listed, &skill.Skill{Name: title, Description: "A page of the wiki."})
		}
	}
	return w.listed, nil
}

// Read returns the text of a page.
func (w *Wiki) Read(_ context.Context, id, _ string) (skill.Reading, error) {
	text, ok := w.pages[id]
	if !ok {
		return skill.Reading{}, skill.ErrNotFound
	}
	return skill.Reading{Name: id, Text: text}, nil
}

// docs:end source

// You can implement Source for anything that lists and reads skills.
func ExampleSource() {
	ctx := context.Background()
	catalog := skill.NewCatalog(ctx, &Wiki{pages: map[string]string{"onboarding": "Begin with the README."}})
	fmt.Println(must(catalog.Read(ctx, "onboarding", "")).Element())
	// Output:
	// <skill name="onboarding">
	// <content>
	// Begin with the README.
	// </content>
	// </skill>
}
