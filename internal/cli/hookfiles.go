package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/space"
	"github.com/belay-run/belay/subagent"
	"github.com/spf13/cobra"
)

// seen holds the hooks that an agent of this project would have: the hooks of files, and
// the hooks of package cli. It runs no turns. A hook runs only if a command asks for it,
// such as "hooks try".
type seen struct {
	settings *config.Loaded
	places   *assembly.Places
	runtime  *hook.Runtime
	leases   []*space.Lease
	ofAgents []agentHook
	closers  []func(context.Context) error
	// agent is the declared agent whose turns are shown, or "". If it is set, runtime also
	// has the hooks that this agent declares.
	agent string
}

// agentHook is a hook that an agent declares. It runs only in the turns of that agent.
type agentHook struct {
	agent string
	place *space.Space
	sub   hook.Subscription
}

// seeHooks installs the hooks that an agent of this project would have. It makes no
// agent.
func (a *app) seeHooks(ctx context.Context) (*seen, error) {
	settings, err := a.settings()
	if err != nil {
		return nil, err
	}
	v := &seen{settings: settings, places: a.assembler().OpenPlaces(ctx, settings)}
	if v.places.Err != nil {
		return nil, &exitError{code: exitFailed, err: v.places.Err, hint: "correct these first: `belay check` checks everything"}
	}
	if v.runtime, err = hook.NewRuntime(belay.Phases(), &hook.RuntimeOptions{Grants: v.places.Host.Grants, Queue: noQueue{}}); err != nil {
		return nil, err
	}
	skills, err := skill.New(assembly.OwnSkills(ctx, settings), &skill.Options{Project: settings.Project, Mode: settings.Mode})
	if err != nil {
		return nil, err
	}
	if _, err := v.runtime.Install(slices.Concat([]hook.Subscription{assembly.RememberTurn(settings, assembly.FullModelName(settings))}, skills.Hooks(), a.hooks)...); err != nil {
		return nil, err
	}
	subagents, err := subagent.New(nil)
	if err != nil {
		return nil, err
	}
	for _, s := range v.places.All {
		into := &space.Target{Hooks: v.runtime, Idle: true}
		if s.Origin.Kind == hook.OriginSpace {
			into.Subagents, into.Build = subagents, func(context.Context, *subagent.Task, *subagent.Declaration, belay.Extension) (*belay.Agent, error) {
				return nil, errors.New("this command does not run agents")
			}
		}
		lease, err := v.places.Host.Install(ctx, s, into)
		if err != nil {
			return nil, errors.Join(&exitError{code: exitFailed, err: err}, v.close(ctx))
		}
		v.leases = append(v.leases, lease)
		for _, d := range s.Agents {
			own, _, err := v.places.Host.AgentHooks(s, d.Name)
			if err != nil {
				continue // "belay check" and the start of the agent report the reason
			}
			v.closers = append(v.closers, own.Close)
			if with, ok := own.(belay.HookExtension); ok {
				for _, sub := range with.Hooks() {
					v.ofAgents = append(v.ofAgents, agentHook{d.Name, s, sub})
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

// notes say why hooks do not run. noteKey makes the keys.
type notes map[string]space.Note

// noteKey returns a unique key for a hook. The id alone is not unique: an agent may declare
// a hook with the id of another hook.
func noteKey(phase, id, file string, line int) string {
	return fmt.Sprintf("%s %s %s:%d", phase, id, file, line)
}

// of returns the note about a hook.
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

// whyOff returns why the hook with this id and phase does not run.
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

// noQueue lets the runtime accept background hooks, so that they can be listed.
type noQueue struct{}

// Enqueue always returns an error.
func (noQueue) Enqueue(context.Context, hook.Run, []hook.Job) error {
	return errors.New("background jobs do not run in this command: they run in a turn")
}

// as selects the turns of a declared agent. It adds the hooks that this agent declares and
// leaves out the hooks of other agents. An empty name changes nothing.
func (v *seen) as(ctx context.Context, name string) error {
	if name == "" || name == assembly.MainAgent {
		return nil
	}
	d, err := assembly.FindAgent(v.settings, name)
	if err != nil {
		return err
	}
	place := v.places.Of(d.Path)
	if err := checkOwnHooks(ctx, v.places, d); err != nil {
		return &exitError{code: exitFailed, err: err}
	}
	v.ofAgents = slices.DeleteFunc(v.ofAgents, func(h agentHook) bool { return h.agent != name || h.place != place })
	var own []hook.Subscription
	for _, h := range v.ofAgents {
		own = append(own, h.sub)
	}
	if _, err := v.runtime.Install(own...); err != nil {
		return &exitError{code: exitFailed, err: fmt.Errorf("the hooks of agent %q: %w", name, err)}
	}
	v.agent = name
	return nil
}

// inTurnsOf is the help text of --agent.
const inTurnsOf = "as in the turns of this declared agent, with the hooks that it declares"

// agentFlag adds the flag --agent, which names a declared agent.
func (a *app) agentFlag(cmd *cobra.Command, name *string, what string) {
	cmd.Flags().StringVar(name, "agent", "", what)
	_ = cmd.RegisterFlagCompletionFunc("agent", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) { // no error: the flag exists
		return a.agentNames(), cobra.ShellCompDirectiveNoFileComp
	})
}

// owner returns the agent whose turns are shown if that agent declares the hook, or else
// "".
func (v *seen) owner(sub hook.Subscription) string {
	own := func(h agentHook) bool {
		return h.sub.ID() == sub.ID() && h.sub.Phase().Name() == sub.Phase().Name()
	}
	if v.agent != "" && slices.ContainsFunc(v.ofAgents, own) {
		return v.agent
	}
	return ""
}

// looking returns a cobra function that calls look with the hooks of this project.
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

// hookLine is one hook in the output of "belay hooks list".
type hookLine struct {
	ID     string      `json:"id"`
	Phase  string      `json:"phase"`
	Kind   string      `json:"kind"`
	Origin hook.Origin `json:"origin"`
	// Agent is the agent that declares the hook. The hook runs only in its turns.
	Agent string `json:"agent,omitempty"`
	// State is on, shadow, off, closed or limited.
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	// Warnings are problems that do not stop the hook from loading.
	Warnings []string `json:"warnings,omitempty"`

	match, fails string
}

func (a *app) listHooksCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the hooks here, and which of them run",
		Long: `Lists the hooks of an agent in this directory: hooks of the command line itself, of the machine's and the user's settings, of
the project, of spaces, and of declared agents. The hooks of a declared agent run only in its turns.

If a gate is not allowed to run, it is closed: it denies everything that it matches. The reason is printed below the list.`,
		Example: "  belay hooks list",
		Args:    arguments(0, 0, "list takes no arguments"),
		RunE: a.looking(func(_ context.Context, v *seen, _ []string) error {
			check, err := newHookCheck(v.settings)
			if err != nil {
				return err
			}
			out := a.newList(asJSON, "HOOK", "PHASE", "RUNS", "FROM", "STATE")
			var told []string
			for _, line := range v.lines(check) {
				out.add(line, line.ID, line.Phase, line.Kind, a.shownOrigin(v.settings, line.Origin)+ofAgent(line.Agent), line.State)
				if line.Reason != "" {
					told = append(told, fmt.Sprintf("%s: %s", line.ID, line.Reason))
				}
				for _, w := range line.Warnings {
					told = append(told, fmt.Sprintf("%s: %s", line.ID, a.onOut.yellow(w)))
				}
			}
			a.assembler().ReportUnheeded(v.settings, v.places)
			if err := out.end(""); err != nil {
				return err
			}
			if len(told) > 0 && !asJSON {
				fmt.Fprintf(a.out, "\n%s\n", strings.Join(slices.Compact(told), "\n"))
			}
			return nil
		}),
	}
	jsonFlag(cmd, &asJSON, "print one JSON object for each hook")
	return cmd
}

// lines returns one entry per hook. The hooks that agents declare come last.
func (v *seen) lines(check *hookCheck) []hookLine {
	notes := v.notes()
	var all []hookLine
	for _, sub := range v.runtime.Subscriptions() {
		line := lineOf(sub, notes, check)
		line.Agent = v.owner(sub)
		all = append(all, line)
	}
	if v.agent != "" { // the runtime already has the hooks of this agent
		return all
	}
	for _, h := range v.ofAgents {
		line := lineOf(h.sub, notes, check)
		line.Agent = h.agent
		all = append(all, line)
	}
	return all
}

// ofAgent returns a suffix with the agent that declares a hook, or "".
func ofAgent(agent string) string {
	if agent == "" {
		return ""
	}
	return " (agent " + agent + ")"
}

func lineOf(sub hook.Subscription, notes notes, check *hookCheck) hookLine {
	o := sub.Options()
	line := hookLine{ID: sub.ID(), Phase: sub.Phase().Name(), Kind: string(o.Kind), Origin: o.Origin, State: "on", match: o.Match.String(), fails: cmp.Or(o.Failure, sub.Phase().Info().Failure).String()}
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

// shownOrigin returns where a hook comes from: its file and line, or the kind of its
// origin.
func (a *app) shownOrigin(s *config.Loaded, o hook.Origin) string {
	if o.File == "" {
		return o.Kind.String()
	}
	return fmt.Sprintf("%s:%d", assembly.ShownPath(s, o.File), o.Line)
}
