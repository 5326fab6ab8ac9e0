package subagent_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/subagent"
)

// This example loads agents from files. The program decides what the names in the files
// mean.
func ExampleLoad() {
	ctx := context.Background()
	files := fstest.MapFS{
		"reviewer.md": {Data: []byte("---\ndescription: Reviews a change.\nmodel: small\ntools: [read]\n---\nYou review changes.\n")},
		"writer.yaml": {Data: []byte("name: writer\nmodell: small\n")},
	}
	models := map[string]belay.Model{"small": scripted.New([]scripted.Step{{Text: "Looks good."}}, nil)}
	main := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "invoke_subagent", Input: `{"name": "reviewer", "prompt": "Look at the change."}`}}},
		{Text: "Done."},
	}, nil)

	// docs:begin declared
	declared, problems := subagent.Load(files) // or LoadDir(".belay/agents")
	for _, p := range problems {
		fmt.Println(p.Error())
	}
	subagents := must(subagent.New(nil))
	for _, d := range declared {
		factory := d.Factory(func(_ context.Context, task *subagent.Task, d *subagent.Declaration) (*belay.Agent, error) {
			model, ok := models[d.Model]
			if !ok {
				return nil, fmt.Errorf("%s: there is no model %q", d.Path, d.Model)
			}
			return belay.New(model, &belay.Options{Name: d.Name, Instructions: d.Prompt, Scope: d.Tools, Budget: d.Budget, Store: task.Store})
		})
		must(subagents.Add(subagent.Subagent{Name: d.Name, Description: d.Description, Factory: factory}))
	}
	// docs:end declared

	agent := must(belay.New(main, &belay.Options{Extensions: []belay.Extension{subagents}}))
	must(agent.Session("demo").Turn(ctx, "Have it reviewed."))
	fmt.Println(main.Requests()[1].Messages[2].Parts[0].Result.Text)
	// Output:
	// writer.yaml:2: unknown key "modell" (did you mean "model"?): valid keys are name, description, model, prompt, tools, skills, hooks, mode, budget, enforce_allowed_tools
	// {"subagent":"reviewer","content":"Looks good."}
}
