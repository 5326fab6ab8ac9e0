package toolbox

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/policy"
)

// PlanTool is the name of the tool that [Planning] adds.
const PlanTool = "present_plan"

// PlanView is the render data of present_plan.
type PlanView struct {
	Kind string `json:"kind"` // "plan"
	Plan string `json:"plan"` // Markdown
	// Mode is the mode of the session from now on.
	Mode string `json:"mode"`
}

// Planning returns an extension with the tool present_plan for plan mode: the agent only
// reads until the user has approved its plan. present_plan asks for approval of the plan, in
// the same way as any other call that needs approval. If the user approves, leave is called,
// and the agent continues with the work. If the user denies, the model gets the reason.
//
// active reports whether a turn of a session is in plan mode. It gets the ids of the session
// and the turn, and the policy of the turn.
// leave ends plan mode and returns the name of the next mode. The extension does not forbid
// anything itself: the floor must do that, with the mode permit.Plan.
func Planning(active func(ctx context.Context, session, turn string, set policy.Settings) bool, leave func(ctx context.Context, session string) (mode string, err error)) belay.Extension { //nolint:ireturn // its concrete type is private
	return &planning{active, leave}
}

type planning struct {
	active func(ctx context.Context, session, turn string, set policy.Settings) bool
	leave  func(ctx context.Context, session string) (mode string, err error)
}

var (
	_ belay.ToolExtension = (*planning)(nil)
	_ belay.HookExtension = (*planning)(nil)
)

// Name returns "plan". Errors use it.
func (*planning) Name() string { return "plan" }

type planInput struct {
	Plan string `json:"plan"`
}

// Tools returns present_plan.
func (p *planning) Tools() []belay.Tool {
	return []belay.Tool{newTool(PlanTool,
		"Shows the user your plan and asks for approval. Use it only in plan mode, when the plan is complete. If the user approves it, plan mode ends and you carry out the plan. An error tells you what to change.",
		`{"type": "object", "additionalProperties": false, "required": ["plan"], "properties": {
			"plan": {"type": "string", "minLength": 1, "maxLength": 50000, "description": "the plan, in Markdown: what you will change, in which files, and how you will check it"}}}`,
		belay.ToolTraits{Serial: true, Idempotent: true}, p.present)}
}

// present runs after the user has approved the plan.
func (p *planning) present(ctx context.Context, call *belay.Invocation, in *planInput) (belay.Result, error) {
	mode, err := p.leave(ctx, call.Session)
	if err != nil {
		return belay.Result{}, failf(belay.ClassFailed, "The user approved the plan, but plan mode could not be ended: %v.", err)
	}
	return answer("The user approved the plan. Plan mode has ended, and the mode is "+mode+" now: carry out the plan.", PlanView{Kind: "plan", Plan: in.Plan, Mode: mode})
}

// Hooks returns a gate that asks for approval of a plan, and a hook that tells the model about
// plan mode.
func (p *planning) Hooks() []hook.Subscription {
	return []hook.Subscription{
		belay.ToolPre.On(PlanTool, p.ask, &hook.Options{
			Description: "asks the user for approval of a plan", Match: hook.Match{Tools: []string{PlanTool}}, Capabilities: hook.CanAsk | hook.CanBlock,
		}),
		belay.TurnPrePromptContext.On(PlanTool+".mode", p.explain, &hook.Options{
			Description: "tells the model about plan mode", Capabilities: hook.CanAddContext, Visibility: hook.VisibleInternally,
			NoInherit: true, // a subagent has no plan of its own to present
		}),
	}
}

func (p *planning) ask(ctx context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
	if !p.active(ctx, call.Session(), call.Turn(), call.Policy()) {
		return belay.Deny("the session is not in plan mode, so no plan needs approval: do the work"), nil
	}
	return belay.Ask("the agent has a plan and wants to begin; if you approve it, plan mode ends"), nil
}

// planMode is what the model gets in plan mode.
const planMode = "The session is in plan mode: you can read, but not change anything. Look at what you need, and ask the user what you must know. " +
	"Then present a complete plan with " + PlanTool + ". Do not try to change files or to run commands that change something before the user has approved the plan."

func (p *planning) explain(ctx context.Context, turn belay.TurnSoFar) (belay.PromptContext, error) {
	if !p.active(ctx, turn.Session(), turn.Turn(), turn.Policy()) {
		return belay.PromptContext{}, nil
	}
	return belay.PromptContext{Entries: []belay.ContextEntry{{ID: "plan_mode", Text: planMode}}}, nil
}
