package skill_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/skill"
)

// The text of a computed skill is made when it is needed.
func ExampleText() {
	ctx := context.Background()
	// docs:begin computed
	onCall := skill.Text("on-call", "Who is on call.", func(_ context.Context, use *skill.Use) (string, error) {
		if use.Source == skill.ByAgent && strings.Contains(use.Args, "tomorrow") {
			return "Grace", nil
		}
		return "Ada", nil
	})
	// docs:end computed
	catalog := skill.NewCatalog(ctx, skill.Values(onCall))
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "invoke_skill", Input: `{"name": "on-call", "args": "tomorrow"}`}}},
		{Text: "It is Grace."},
		{Text: "Ada, as I see."},
	}, nil)
	agent := must(belay.New(model, &belay.Options{Extensions: []belay.Extension{must(skill.New(catalog, nil))}}))

	must(agent.Session("demo").Turn(ctx, "Who is on call tomorrow?"))
	must(agent.Session("demo").Turn(ctx, "/on-call and today?"))
	fmt.Println(model.Requests()[1].Messages[2].Parts[0].Result.Text)
	fmt.Println(model.Requests()[2].Messages[4].Text())
	// Output:
	// {"skill":"on-call","content":"Grace"}
	// <skill name="on-call">
	// <content>
	// Ada
	// </content>
	// </skill>
}
