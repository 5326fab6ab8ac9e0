package skill_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/skill"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// This example makes an agent with skills. The model reads a skill when a task fits its
// description. A user adds a skill to a message by its name.
func Example() {
	ctx := context.Background()
	files := fstest.MapFS{
		"release-notes/SKILL.md": {Data: []byte("---\nname: release-notes\ndescription: How we write release notes. Use it when asked for them.\n---\nOne line for each change.\n")},
		"concise.md":             {Data: []byte("---\ndescription: Short answers.\n---\nAnswer in one sentence.\n")},
	}
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "read_skill", Input: `{"name": "release-notes"}`}}},
		{Text: "Done."},
		{Text: "It is blue."},
	}, nil)

	// docs:begin agent
	catalog := skill.NewCatalog(ctx, skill.FS("built in", files), skill.Dir(".belay/skills"))
	skills := must(skill.New(catalog, nil))
	agent := must(belay.New(model, &belay.Options{Extensions: []belay.Extension{skills}}))
	// docs:end agent

	must(agent.Session("demo").Turn(ctx, "Write the release notes."))
	must(agent.Session("demo").Turn(ctx, "/concise Why is the sky what it is?"))

	requests := model.Requests()
	fmt.Println(requests[0].Tools[0].Name)
	fmt.Println(requests[1].Messages[2].Parts[0].Result.Text)
	last := requests[2].Messages
	fmt.Println(last[len(last)-2].Text())
	fmt.Println(last[len(last)-1].Text())
	// Output:
	// read_skill
	// <skill name="release-notes">
	// <content>
	// One line for each change.
	// </content>
	// </skill>
	// <skill name="concise">
	// <content>
	// Answer in one sentence.
	// </content>
	// </skill>
	// [invoked_extension__skill_concise] Why is the sky what it is?
}
