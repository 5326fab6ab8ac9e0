package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/serve/api"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/space"
	"github.com/belay-run/belay/subagent"
)

// Hooks are the hooks that an agent of the project would have: the hooks of files, and those
// that the program adds. No hook runs, unless a command such as "hooks try" calls it.
type Hooks struct {
	Settings *config.Loaded
	Places   *assembly.Places
	Runtime  *hook.Runtime
	Leases   []*space.Lease
	// OfAgents are the hooks that agents declare. As leaves only those of one agent.
	OfAgents []AgentHook
	// Agent is the declared agent whose turns are shown, or "". If it is set, Runtime also
	// has the hooks that this agent declares.
	Agent string

	closers []func(context.Context) error
}

// AgentHook is a hook that an agent declares. It runs only in the turns of that agent.
type AgentHook struct {
	Agent string
	Place *space.Space
	Sub   hook.Subscription
}

// OpenHooks installs the hooks that an agent of the project would have, without an agent.
// Call Close after use.
func OpenHooks(ctx context.Context, from *assembly.Assembler, settings *config.Loaded) (v *Hooks, err error) {
	v = &Hooks{Settings: settings, Places: from.OpenPlaces(ctx, settings)}
	if v.Places.Err != nil {
		return nil, &assembly.Error{Err: v.Places.Err, Hint: "correct these first: `belay check` checks everything"}
	}
	if v.Runtime, err = hook.NewRuntime(belay.Phases(), &hook.RuntimeOptions{Grants: v.Places.Host.Grants, Queue: NoQueue{}}); err != nil {
		return nil, err
	}
	skills, err := skill.New(assembly.OwnSkills(ctx, settings), &skill.Options{Project: settings.Project, Mode: settings.Mode})
	if err != nil {
		return nil, err
	}
	if _, err := v.Runtime.Install(slices.Concat([]hook.Subscription{assembly.RememberTurn(settings, nil, assembly.FullModelName(settings))}, skills.Hooks(), from.Hooks)...); err != nil {
		return nil, err
	}
	subagents, err := subagent.New(nil)
	if err != nil {
		return nil, err
	}
	for _, s := range v.Places.All {
		into := &space.Target{Hooks: v.Runtime, Idle: true}
		if s.Origin.Kind == hook.OriginSpace {
			into.Subagents, into.Build = subagents, func(context.Context, *subagent.Task, *subagent.Declaration, belay.Extension) (*belay.Agent, error) {
				return nil, errors.New("nothing is run here")
			}
		}
		lease, err := v.Places.Host.Install(ctx, s, into)
		if err != nil {
			return nil, errors.Join(&assembly.Error{Err: err}, v.Close(ctx))
		}
		v.Leases = append(v.Leases, lease)
		for _, d := range s.Agents {
			own, _, err := v.Places.Host.AgentHooks(s, d.Name)
			if err != nil {
				continue // "belay check" and the start of the agent report the reason
			}
			v.closers = append(v.closers, own.Close)
			if with, ok := own.(belay.HookExtension); ok {
				for _, sub := range with.Hooks() {
					v.OfAgents = append(v.OfAgents, AgentHook{d.Name, s, sub})
				}
			}
		}
	}
	return v, nil
}

// Close removes the hooks.
func (v *Hooks) Close(ctx context.Context) error {
	var problems []error
	for _, end := range v.closers {
		problems = append(problems, end(context.WithoutCancel(ctx)))
	}
	for _, l := range slices.Backward(v.Leases) {
		problems = append(problems, l.Unload(context.WithoutCancel(ctx)))
	}
	return errors.Join(problems...)
}

// Notes say why hooks do not run. noteKey makes the keys.
type Notes map[string]space.Note

// noteKey returns a unique key for a hook. The id alone is not unique: an agent may declare
// a hook with the id of another hook.
func noteKey(phase, id, file string, line int) string {
	return fmt.Sprintf("%s %s %s:%d", phase, id, file, line)
}

// Of returns the note about a hook.
func (n Notes) Of(phase, id string, o hook.Origin) (space.Note, bool) {
	note, ok := n[noteKey(phase, id, o.File, o.Line)]
	return note, ok
}

// Notes returns the notes about all hooks.
func (v *Hooks) Notes() Notes {
	all := make(Notes)
	for _, l := range v.Leases {
		for _, n := range l.Notes() {
			all[noteKey(n.Phase, n.ID, n.File, n.Line)] = n
		}
	}
	return all
}

// WhyOff returns why the hook with this id and phase does not run.
func (v *Hooks) WhyOff(phase, id string) string {
	for _, sub := range v.Runtime.Subscriptions() {
		if sub.ID() != id || sub.Phase().Name() != phase {
			continue
		}
		if n, ok := v.Notes().Of(phase, id, sub.Options().Origin); ok {
			return n.Reason
		}
	}
	return "its file says enabled: false"
}

// NoQueue lets the runtime accept background hooks, so that they can be listed.
type NoQueue struct{}

// Enqueue always returns an error.
func (NoQueue) Enqueue(context.Context, hook.Run, []hook.Job) error {
	return errors.New("background jobs do not run in this command: they run in a turn")
}

// As selects the turns of a declared agent. It adds the hooks that this agent declares and
// leaves out the hooks of other agents. An empty name or the main agent changes nothing.
func (v *Hooks) As(ctx context.Context, name string) error {
	if name == "" || name == assembly.MainAgent {
		return nil
	}
	d, err := assembly.FindAgent(v.Settings, name)
	if err != nil {
		return err
	}
	place := v.Places.Of(d.Path)
	if err := CheckOwnHooks(ctx, v.Places, d); err != nil {
		return &assembly.Error{Err: err}
	}
	v.OfAgents = slices.DeleteFunc(v.OfAgents, func(h AgentHook) bool { return h.Agent != name || h.Place != place })
	var own []hook.Subscription
	for _, h := range v.OfAgents {
		own = append(own, h.Sub)
	}
	if _, err := v.Runtime.Install(own...); err != nil {
		return &assembly.Error{Err: fmt.Errorf("the hooks of agent %q: %w", name, err)}
	}
	v.Agent = name
	return nil
}

// Owner returns the agent whose turns are shown if that agent declares the hook, or else
// "".
func (v *Hooks) Owner(sub hook.Subscription) string {
	own := func(h AgentHook) bool {
		return h.Sub.ID() == sub.ID() && h.Sub.Phase().Name() == sub.Phase().Name()
	}
	if v.Agent != "" && slices.ContainsFunc(v.OfAgents, own) {
		return v.Agent
	}
	return ""
}

// List returns one entry per hook. The hooks that agents declare come last.
func (v *Hooks) List(check *HookCheck) []api.HookLine {
	notes := v.Notes()
	var all []api.HookLine
	defer func() { v.markUntrusted(all, notes) }()
	for _, sub := range v.Runtime.Subscriptions() {
		line := lineOf(sub, notes, check)
		line.Agent = v.Owner(sub)
		all = append(all, line)
	}
	if v.Agent != "" { // the runtime already has the hooks of this agent
		return all
	}
	for _, h := range v.OfAgents {
		line := lineOf(h.Sub, notes, check)
		line.Agent = h.Agent
		all = append(all, line)
	}
	return all
}

// markUntrusted marks the hooks that do not run as declared because their directory is not
// trusted.
func (v *Hooks) markUntrusted(lines []api.HookLine, notes Notes) {
	known := make(map[*space.Space]bool)
	for i := range lines {
		line := &lines[i]
		if _, noted := notes.Of(line.Phase, line.ID, line.Origin); !noted {
			continue
		}
		place := v.Places.Of(line.Origin.File)
		if place == nil {
			continue
		}
		untrusted, asked := known[place]
		if !asked {
			standing, err := v.Places.Host.Standing(place)
			untrusted = err != nil || !standing.Trusted
			known[place] = untrusted
		}
		line.Untrusted = untrusted
	}
}

func lineOf(sub hook.Subscription, notes Notes, check *HookCheck) api.HookLine {
	o := sub.Options()
	line := api.HookLine{ID: sub.ID(), Phase: sub.Phase().Name(), Kind: string(o.Kind), Origin: o.Origin, State: "on", Match: o.Match.String(), Fails: cmp.Or(o.Failure, sub.Phase().Info().Failure).String()}
	if o.Shadow {
		line.State = "shadow"
	}
	if o.Disabled {
		line.State = "off"
	}
	if n, ok := notes.Of(line.Phase, line.ID, o.Origin); ok {
		switch line.Reason = n.Reason; {
		case n.Closed:
			line.State = "closed"
		case n.Limited:
			line.State = "limited"
		}
	}
	if o.Origin.File != "" {
		line.Warnings = check.Tools(o.Match)
	}
	return line
}

// Plan is the order of the hooks of a phase. --json prints it.
type Plan struct {
	hook.Plan
	// Agent is the declared agent whose turns are shown. Own are the ids of the hooks that
	// this agent declares.
	Agent string   `json:"agent,omitempty"`
	Own   []string `json:"own,omitempty"`
	// OfAgents are the hooks that agents declare. They are not part of the plan, because
	// each runs only in the turns of its agent.
	OfAgents []api.HookLine `json:"of_agents,omitempty"`
	// Lines are the hooks of the phase that are in the plan or disabled, by id.
	Lines map[string]api.HookLine `json:"-"`
}

// Plan returns the order of the hooks of a phase.
func (v *Hooks) Plan(phase string, lines []api.HookLine) (Plan, error) {
	plan, err := v.Runtime.Plan(phase)
	p := Plan{Plan: plan, Agent: v.Agent, Lines: make(map[string]api.HookLine)}
	for i := range lines {
		if line := &lines[i]; line.Phase == phase && (line.Agent == "" || v.Agent != "") {
			p.Lines[line.ID] = *line
		}
		switch line := &lines[i]; {
		case line.Phase != phase || line.Agent == "":
		case v.Agent != "":
			p.Own = append(p.Own, line.ID)
		default:
			p.OfAgents = append(p.OfAgents, *line)
		}
	}
	return p, err
}

// CheckOwnHooks returns the mistakes in the hooks that an agent declares.
func CheckOwnHooks(ctx context.Context, places *assembly.Places, d *subagent.Declaration) error {
	place := places.Of(d.Path)
	if place == nil || place.Foreign() != nil { // hooks of agents are not read there
		if unread := assembly.HooksUnread(d); unread != nil {
			return unread
		}
		return nil
	}
	own, _, err := places.Host.AgentHooks(place, d.Name)
	if err != nil {
		return err
	}
	return own.Close(ctx)
}
