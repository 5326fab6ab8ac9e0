package belay_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
)

// House is an extension. It provides a tool, a hook, a directive and a line of the system
// prompt.
type House struct{ Rules []string }

var (
	_ belay.ToolExtension      = House{}
	_ belay.HookExtension      = House{}
	_ belay.PromptExtension    = House{}
	_ belay.DirectiveExtension = House{}
)

// Name returns the name, which appears in errors.
func (House) Name() string { return "house" }

// Prompt returns a fragment for every system prompt.
func (House) Prompt(belay.AgentConfig) (fragment, resources string) {
	return "The tool house_rules returns the rules of the house.", ""
}

// Tools returns a tool.
func (h House) Tools() []belay.Tool {
	return []belay.Tool{belay.NewTool("house_rules", "Tells the rules of the house.",
		func(context.Context, struct{}) ([]string, error) { return h.Rules, nil }, nil)}
}

// Hooks returns a hook that adds a fact to every turn.
func (h House) Hooks() []hook.Subscription {
	return []hook.Subscription{belay.TurnPrePromptContext.On("house", func(context.Context, belay.TurnSoFar) (belay.PromptContext, error) {
		return belay.PromptContext{Entries: []belay.ContextEntry{{ID: "house", Text: fmt.Sprintf("There are %d rules.", len(h.Rules))}}}, nil
	}, nil)}
}

// Directives returns /rules, which answers without the model.
func (h House) Directives() []belay.Directive {
	return []belay.Directive{{
		Name: "rules", Description: "tell the rules of the house",
		Run: func(context.Context, *belay.DirectiveUse) (belay.DirectiveOutcome, error) {
			return belay.DirectiveOutcome{Reply: &belay.Reply{Text: strings.Join(h.Rules, "; ")}}, nil
		},
	}}
}

// An extension is a Go value with a name and some of the extension interfaces.
func ExampleExtension() {
	ctx := context.Background()
	model := scripted.New([]scripted.Step{{Text: "Welcome."}}, nil)
	agent := must(belay.New(model, &belay.Options{Extensions: []belay.Extension{House{Rules: []string{"wipe your feet", "feed the cat"}}}}))

	fmt.Println(must(agent.Session("demo").Turn(ctx, "/rules")).Text)
	fmt.Println(must(agent.Session("demo").Turn(ctx, "Hello")).Text)

	sent := model.Requests()[0] // the only request: /rules needed none
	fmt.Println(sent.System)
	fmt.Println(sent.Messages[len(sent.Messages)-1].Text())
	// Output:
	// wipe your feet; feed the cat
	// Welcome.
	// The tool house_rules returns the rules of the house.
	// <context id="house" from="house">
	// There are 2 rules.
	// </context>
}
