//go:build unix

package declare_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
)

// This example installs a script as a gate from Go code, without a hook file.
func ExampleCommand() {
	model := scripted.New([]scripted.Step{
		{Calls: []scripted.Call{{Tool: "deploy", Input: `{}`}}},
		{Text: "I could not deploy."},
	}, nil)
	deploy := belay.NewRawTool(belay.ToolDeclaration{Name: "deploy", Description: "Deploys."}, nil, nil)

	// docs:begin command
	gate, err := declare.Command(belay.ToolPre, "freeze", []string{"sh", "-c", "echo no deploys today >&2; exit 2"}, &hook.Options{
		Match: hook.Match{Tools: []string{"deploy"}},
	})
	if err != nil {
		panic(err)
	}
	agent, err := belay.New(model, &belay.Options{Tools: []belay.Tool{deploy}, Hooks: []hook.Subscription{gate}})
	// docs:end command
	if err != nil {
		panic(err)
	}
	for event, err := range agent.Session("demo").Run(context.Background(), "Deploy it.") {
		if err != nil {
			panic(err)
		}
		if event.Kind == belay.EventToolUseResult {
			first, _, _ := strings.Cut(event.Result.Text, "\n")
			fmt.Println(first)
		}
	}
	// Output: Denied by "freeze": no deploys today
}
