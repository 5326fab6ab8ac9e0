package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/space"
	"github.com/belay-run/belay/subagent"
)

// seen are the hooks of an agent that takes no turns: those of files beside those that
// the command line has itself. Nothing runs before it is asked.
type seen struct {
	settings *config.Loaded
	places   *places
	runtime  *hook.Runtime
	leases   []*space.Lease
	ofAgents []agentHook
	closers  []func(context.Context) error
}

// agentHook is a hook that an agent declares: it is there in the agent's turns alone.
type agentHook struct {
	agent string
	sub   hook.Subscription
}

// seeHooks installs the hooks that an agent here would have.
func (a *app) seeHooks(ctx context.Context) (*seen, error) {
	settings, err := a.settings()
	if err != nil {
		return nil, err
	}
	v := &seen{settings: settings, places: a.openPlaces(ctx, settings)}
	if v.places.err != nil {
		return nil, &exitError{code: exitFailed, err: v.places.err, hint: "mend these first: `belay check` looks at everything"}
	}
	if v.runtime, err = hook.NewRuntime(belay.Phases(), &hook.RuntimeOptions{Grants: v.places.host.Grants, Queue: noQueue{}}); err != nil {
		return nil, err
	}
	skills, err := skill.New(openSkills(ctx, settings), &skill.Options{Project: settings.Project, Mode: settings.Mode})
	if err != nil {
		return nil, err
	}
	if _, err := v.runtime.Install(slices.Concat([]hook.Subscription{rememberTurn(settings)}, skills.Hooks(), a.hooks)...); err != nil {
		return nil, err
	}
	subagents, err := subagent.New(nil)
	if err != nil {
		return nil, err
	}
	for _, s := range v.places.all {
		into := &space.Target{Hooks: v.runtime, Idle: true}
		if s.Origin.Kind == hook.OriginSpace {
			into.Subagents, into.Build = subagents, func(context.Context, *subagent.Task, *subagent.Declaration, belay.Extension) (*belay.Agent, error) {
				return nil, errors.New("nothing is run here")
			}
		}
		lease, err := v.places.host.Install(ctx, s, into)
		if err != nil {
			return nil, errors.Join(&exitError{code: exitFailed, err: err}, v.close(ctx))
		}
		v.leases = append(v.leases, lease)
		for _, d := range s.Agents {
			own, _, err := v.places.host.AgentHooks(s, d.Name)
			if err != nil {
				continue // `belay check` tells why, and so does the agent when it is to begin
			}
			v.closers = append(v.closers, own.Close)
			if with, ok := own.(belay.HookExtension); ok {
				for _, sub := range with.Hooks() {
					v.ofAgents = append(v.ofAgents, agentHook{d.Name, sub})
				}
			}
		}
	}
	return v, nil
}

func (v *seen) close(ctx context.Context) error {
	var problems []error
	for _, end := range v.closers {
		problems = append(problems, end(context.WithoutCancel(ctx)))
	}
	for _, l := range slices.Backward(v.leases) {
		problems = append(problems, l.Unload(context.WithoutCancel(ctx)))
	}
	return errors.Join(problems...)
}

// notes are about the hooks that do not run.
type notes map[string]space.Note

// noteKey tells hooks apart: agents' own may have the id of another.
func noteKey(phase, id, file string, line int) string {
	return fmt.Sprintf("%s %s %s:%d", phase, id, file, line)
}

// of is the note about a hook.
func (n notes) of(phase, id string, o hook.Origin) (space.Note, bool) {
	note, ok := n[noteKey(phase, id, o.File, o.Line)]
	return note, ok
}

func (v *seen) notes() notes {
	all := make(notes)
	for _, l := range v.leases {
		for _, n := range l.Notes() {
			all[noteKey(n.Phase, n.ID, n.File, n.Line)] = n
		}
	}
	return all
}

// whyOff says why a hook takes no part, by its id at a phase.
func (v *seen) whyOff(phase, id string) string {
	for _, sub := range v.runtime.Subscriptions() {
		if sub.ID() != id || sub.Phase().Name() != phase {
			continue
		}
		if n, ok := v.notes().of(phase, id, sub.Options().Origin); ok {
			return n.Reason
		}
	}
	return "its file says enabled: false"
}

// noQueue lets background hooks be listed where nothing runs.
type noQueue struct{}

// Enqueue refuses.
func (noQueue) Enqueue(context.Context, hook.Run, []hook.Job) error {
	return errors.New("background work is not taken on here: take a turn")
}

// looking runs a command that looks at the hooks of this place.
func (a *app) looking(look func(ctx context.Context, v *seen, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) (err error) {
		v, err := a.seeHooks(cmd.Context())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, v.close(cmd.Context())) }()
		return look(cmd.Context(), v, args)
	}
}

// hookLine is a hook as it is listed.
type hookLine struct {
	ID     string      `json:"id"`
	Phase  string      `json:"phase"`
	Kind   string      `json:"kind"`
	Origin hook.Origin `json:"origin"`
	// Agent declares it, and has it alone.
	Agent string `json:"agent,omitempty"`
	// State is on, shadow, off, closed or limited.
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	// Warnings are what is odd about it and no mistake.
	Warnings []string `json:"warnings,omitempty"`
}

func (a *app) listHooksCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the hooks of this place, and which of them run",
		Long: `Lists the hooks that an agent has here: those of the command line itself, of the machine's and the user's settings, of the
project and of spaces, and those that agents declare, which are there in their turns alone. One that is closed is a gate
that denies whatever it matches, because it may not run; the reason is told below.`,
		Example: "  belay hooks list",
		Args:    arguments(0, 0, "list takes none"),
		RunE: a.looking(func(_ context.Context, v *seen, _ []string) error {
			check, err := newHookCheck(v.settings)
			if err != nil {
				return err
			}
			var t table
			t.add("HOOK", "PHASE", "RUNS", "FROM", "STATE")
			var told []string
			for _, line := range v.lines(check) {
				if asJSON {
					if err := a.printJSON(line); err != nil {
						return err
					}
					continue
				}
				from := a.shownOrigin(v.settings, line.Origin)
				if line.Agent != "" {
					from += " (agent " + line.Agent + ")"
				}
				t.add(line.ID, line.Phase, line.Kind, from, line.State)
				if line.Reason != "" {
					told = append(told, fmt.Sprintf("%s: %s", line.ID, line.Reason))
				}
				for _, w := range line.Warnings {
					told = append(told, fmt.Sprintf("%s: %s", line.ID, a.onOut.yellow(w)))
				}
			}
			if asJSON {
				return nil
			}
			if err := t.write(a.out, a.onOut.dim); err != nil {
				return err
			}
			if len(told) > 0 {
				fmt.Fprintf(a.out, "\n%s\n", strings.Join(slices.Compact(told), "\n"))
			}
			return nil
		}),
	}
	jsonFlag(cmd, &asJSON, "print one JSON object for each hook")
	return cmd
}

// lines are the hooks as they are listed, those that agents declare at the end.
func (v *seen) lines(check *hookCheck) []hookLine {
	notes := v.notes()
	var all []hookLine
	for _, sub := range v.runtime.Subscriptions() {
		all = append(all, lineOf(sub, notes, check))
	}
	for _, h := range v.ofAgents {
		line := lineOf(h.sub, notes, check)
		line.Agent = h.agent
		all = append(all, line)
	}
	return all
}

func lineOf(sub hook.Subscription, notes notes, check *hookCheck) hookLine {
	o := sub.Options()
	line := hookLine{ID: sub.ID(), Phase: sub.Phase().Name(), Kind: string(o.Kind), Origin: o.Origin, State: "on"}
	if o.Shadow {
		line.State = "shadow"
	}
	if o.Disabled {
		line.State = "off"
	}
	if n, ok := notes.of(line.Phase, line.ID, o.Origin); ok {
		switch line.Reason = n.Reason; {
		case n.Closed:
			line.State = "closed"
		case n.Limited:
			line.State = "limited"
		}
	}
	if o.Origin.File != "" {
		line.Warnings = check.tools(o.Match)
	}
	return line
}

// shownOrigin says where a hook is from, in few words.
func (a *app) shownOrigin(s *config.Loaded, o hook.Origin) string {
	if o.File == "" {
		return o.Kind.String()
	}
	return fmt.Sprintf("%s:%d", shownPath(s, o.File), o.Line)
}

// shownPath is a path as the reader of a listing would write it.
func shownPath(s *config.Loaded, file string) string {
	for _, dir := range []string{s.Project, realDir(s.Project)} {
		if rel, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(rel) {
			return rel
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		if rel, err := filepath.Rel(home, file); err == nil && filepath.IsLocal(rel) {
			return filepath.Join("~", rel)
		}
	}
	return file
}

func realDir(dir string) string {
	if actual, err := filepath.EvalSymlinks(dir); err == nil {
		return actual
	}
	return dir
}

func (a *app) planHooksCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "plan [PHASE]",
		Short: "Draw the order in which hooks are asked, and say why",
		Long: `Draws the order of the hooks of one PHASE, or of all phases that have some: what stands side by side may run at the same
time, the rest from top to bottom. Nothing runs.`,
		Example: `  belay hooks plan
  belay hooks plan tool.pre`,
		Args:              arguments(0, 1, "name one PHASE at most: `belay hooks phases` lists them"),
		ValidArgsFunction: completePhases,
		RunE: a.looking(func(_ context.Context, v *seen, args []string) error {
			names := phaseNames()
			if len(args) == 1 {
				if !slices.Contains(names, args[0]) {
					return usage("there is no phase %q%s: `belay hooks phases` lists them", args[0], near.Hint(args[0], names))
				}
				names = args
			}
			check, err := newHookCheck(v.settings)
			if err != nil {
				return err
			}
			first := true
			for _, name := range names {
				plan, err := v.runtime.Plan(name)
				if err != nil {
					return err
				}
				if len(plan.Entries)+len(plan.Disabled) == 0 && len(args) == 0 {
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
				a.drawPlan(v, plan, check)
			}
			if first && !asJSON {
				fmt.Fprintln(a.out, "there are no hooks")
			}
			return nil
		}),
	}
	jsonFlag(cmd, &asJSON, "print one JSON object for each phase")
	return cmd
}

// drawPlan draws the order of one phase: a line for each hook along a rail, with those
// that may run together in a bracket.
func (a *app) drawPlan(v *seen, plan hook.Plan, check *hookCheck) {
	s, notes := v.settings, v.notes()
	fmt.Fprintf(a.out, "%s  %s\n", plan.Phase, a.onOut.dim(plan.Kind.String()))
	if len(plan.Entries) == 0 {
		fmt.Fprintln(a.out, "  nobody is asked")
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
		state := e.Failure.String()
		if e.Shadow {
			state = "shadow"
		}
		if n, ok := notes.of(plan.Phase, e.ID, e.Origin); ok && n.Closed {
			state = "closed: it may not run"
		}
		t.add(rail, fmt.Sprint(e.Position), e.ID, cmp.Or(e.Match, "everything"), runs, state, a.shownOrigin(s, e.Origin), order(e))
	}
	_ = t.write(a.out, nil) // as other lines of it
	for _, id := range plan.Disabled {
		fmt.Fprintf(a.out, "  %s\n", a.onOut.dim("off: "+id+": "+v.whyOff(plan.Phase, id)))
	}
	for _, line := range v.lines(check) {
		if line.Phase != plan.Phase || line.Agent != "" {
			continue
		}
		if line.Reason != "" && line.State != "off" {
			fmt.Fprintf(a.out, "  %s\n", a.onOut.dim(line.State+": "+line.ID+": "+line.Reason))
		}
		for _, w := range line.Warnings {
			fmt.Fprintf(a.out, "  %s\n", a.onOut.yellow(line.ID+": "+w))
		}
	}
}

// order says what put a hook in its place.
func order(e hook.PlanEntry) string {
	if len(e.After) > 0 {
		return "after " + strings.Join(e.After, ", ")
	}
	return e.Why
}
