package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/serve/api"
)

func (a *app) planHooksCommand() *cobra.Command {
	var asJSON bool
	var agent string
	cmd := &cobra.Command{
		Use:   "plan [PHASE]",
		Short: "Show the order in which hooks run, and why",
		Long: `Draws the order of the hooks of one PHASE, or of all phases that have hooks. Hooks run from top to bottom. Hooks
that are side by side may run at the same time. Hooks of declared agents run only in the turns of their agent, so they are
listed below with the agent's name. To draw the order in an agent's turns, use --agent. Nothing runs.`,
		Example: `  belay hooks plan
  belay hooks plan tool.pre
  belay hooks plan tool.pre --agent reviewer`,
		Args:              arguments(0, 1, "name one PHASE at most: `belay hooks phases` lists them"),
		ValidArgsFunction: completePhases,
		RunE: a.looking(func(ctx context.Context, v *inspect.Hooks, args []string) error {
			names := phaseNames()
			if len(args) == 1 {
				if !slices.Contains(names, args[0]) {
					return usage("there is no phase %q%s: `belay hooks phases` lists them", args[0], near.Hint(args[0], names))
				}
				names = args
			}
			if err := v.As(ctx, agent); err != nil {
				return err
			}
			return a.tellPlans(v, names, len(args) == 0, asJSON)
		}),
	}
	a.agentFlag(cmd, &agent, inTurnsOf)
	jsonFlag(cmd, &asJSON, "print one JSON object for each phase")
	return cmd
}

// tellPlans prints the order of the hooks of each phase. If some is true, it skips phases
// without hooks.
func (a *app) tellPlans(v *inspect.Hooks, phases []string, some, asJSON bool) error {
	check, err := inspect.NewHookCheck(v.Settings)
	if err != nil {
		return err
	}
	first, lines := true, v.List(check)
	for _, phase := range phases {
		plan, err := v.Plan(phase, lines)
		if err != nil {
			return err
		}
		if len(plan.Entries)+len(plan.Disabled)+len(plan.OfAgents) == 0 && some {
			continue
		}
		if asJSON {
			if err := a.printJSON(plan); err != nil {
				return err
			}
			continue
		}
		if !first {
			fmt.Fprintln(a.out)
		}
		first = false
		a.drawPlan(v, &plan, lines)
	}
	if first && !asJSON {
		fmt.Fprintln(a.out, "there are no hooks")
	}
	return nil
}

// mayNotRun is the state of a gate that is not allowed to run and therefore denies.
const mayNotRun = "closed: it denies, because it is not allowed to run"

// drawPlan prints the hooks of one phase, one per line. A bracket joins hooks that can run
// at the same time. The hooks of agents come last.
func (a *app) drawPlan(v *inspect.Hooks, plan *inspect.Plan, lines []api.HookLine) {
	s, notes := v.Settings, v.Notes()
	fmt.Fprintf(a.out, "%s  %s\n", plan.Phase, a.onOut.dim(plan.Kind.String()))
	if len(plan.Entries) == 0 {
		fmt.Fprintln(a.out, "  no hook runs")
	}
	var t table
	for i, e := range plan.Entries {
		together := func(o int) bool {
			return o >= 0 && o < len(plan.Entries) && plan.Entries[o].Stage == e.Stage && e.Runs == "overlapping" && plan.Entries[o].Runs == e.Runs
		}
		rail := "  ●"
		switch before, behind := together(i-1), together(i+1); {
		case before && behind:
			rail = "  ├"
		case before:
			rail = "  └"
		case behind:
			rail = "  ┌"
		}
		runs := e.Runs
		if e.Timeout > 0 {
			runs += " " + e.Timeout.String()
		}
		state := failing(e.Failure.String())
		if e.Shadow {
			state = "shadow"
		}
		if n, ok := notes.Of(plan.Phase, e.ID, e.Origin); ok && n.Closed {
			state = mayNotRun
		}
		of := ""
		if slices.Contains(plan.Own, e.ID) {
			of = ofAgent(plan.Agent)
		}
		t.add(rail, fmt.Sprint(e.Position), e.ID, cmp.Or(e.Match, "everything"), runs, state, a.shownOrigin(s, e.Origin)+of, order(e))
	}
	for i := range plan.OfAgents {
		line, state := &plan.OfAgents[i], plan.OfAgents[i].State
		switch state {
		case "on", "limited":
			state = failing(line.Fails)
		case "closed":
			state = mayNotRun
		}
		t.add("  ○", "", line.ID, cmp.Or(line.Match, "everything"), line.Kind, state, a.shownOrigin(s, line.Origin)+ofAgent(line.Agent), "runs only in the turns of this agent: use --agent "+line.Agent)
	}
	_ = t.write(a.out, nil) // ignore errors, as for the other lines here
	for _, id := range plan.Disabled {
		fmt.Fprintf(a.out, "  %s\n", a.onOut.dim("off: "+id+": "+v.WhyOff(plan.Phase, id)))
	}
	for _, line := range lines {
		if line.Phase != plan.Phase {
			continue
		}
		inOrder := line.Agent == "" || v.Agent != ""
		if line.Reason != "" && (line.State != "off" || !inOrder) {
			fmt.Fprintf(a.out, "  %s\n", a.onOut.dim(line.State+": "+line.ID+ofAgent(line.Agent)+": "+line.Reason))
		}
		for _, w := range line.Warnings {
			fmt.Fprintf(a.out, "  %s\n", a.onOut.yellow(line.ID+ofAgent(line.Agent)+": "+w))
		}
	}
}

// order returns why a hook is at its position.
func order(e hook.PlanEntry) string {
	if len(e.After) > 0 {
		return "after " + strings.Join(e.After, ", ")
	}
	return extreme.ReplaceAllStringFunc(e.Why, func(priority string) string {
		if strings.HasPrefix(priority, "priority -") {
			return "first"
		}
		return "last"
	})
}

// extreme matches a priority so large that it only means "first" or "last".
var extreme = lazyregexp.New(`priority -?\d{9,}`)

// failing returns what a failed run of a hook means, such as "fails open". It does not
// return "closed" alone: that word means a gate that is not allowed to run.
func failing(mode string) string {
	if mode == "fallback" {
		return "falls back"
	}
	return "fails " + mode
}
