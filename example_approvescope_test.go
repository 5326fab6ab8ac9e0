package belay_test

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
)

// An approval can cover more than one call: all calls of the tool in this session, until
// somebody revokes it.
func ExampleScope() {
	ctx := context.Background()
	deploy := func(env string) scripted.Step {
		return scripted.Step{Calls: []scripted.Call{{Tool: "deploy", Input: fmt.Sprintf(`{"env": %q}`, env)}}}
	}
	model := scripted.New([]scripted.Step{
		deploy("staging"), deploy("demo"),
		{Text: "Both are out."},
		deploy("prod"),
	}, nil)
	agent := must(belay.New(model, &belay.Options{
		Tools: []belay.Tool{deployTool()},
		Hooks: []hook.Subscription{AskFirst},
		OnAsk: belay.AskPark,
	}))
	session := agent.Session("demo")

	// docs:begin scope
	turn := must(session.Turn(ctx, "Deploy it to staging and demo."))
	asked := turn.Waits[0]
	must(agent.Decide(ctx, belay.Decision{
		Approval: asked.ID, Hash: asked.Hash, Allow: true, By: "ann",
		Scope: belay.ApprovalScope{Kind: belay.ScopeSession}, // not for this call alone
	}))
	turn = must(belay.Await(session.Resume(ctx)))
	fmt.Println(turn.Reason, "-", turn.Text)

	for _, grant := range must(session.Grants(ctx)) {
		fmt.Printf("%s answers %s about %s\n", grant.By, grant.Asker, grant.Tool)
		check(session.Revoke(ctx, grant.Approval))
	}
	turn = must(session.Turn(ctx, "And to prod."))
	fmt.Println(turn.Reason)
	// docs:end scope

	// Output:
	// deploying to staging
	// deploying to demo
	// end_turn - Both are out.
	// ann answers ask-first about deploy
	// parked
}
