package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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
	if _, err := v.runtime.Install(slices.Concat([]hook.Subscription{rememberTurn(settings), environment(settings)}, skills.Hooks(), a.hooks)...); err != nil {
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
	}
	return v, nil
}

func (v *seen) close(ctx context.Context) error {
	var problems []error
	for _, l := range slices.Backward(v.leases) {
		problems = append(problems, l.Unload(context.WithoutCancel(ctx)))
	}
	return errors.Join(problems...)
}

// notes are about the hooks that do not run, by phase and id.
func (v *seen) notes() map[string]space.Note {
	all := make(map[string]space.Note)
	for _, l := range v.leases {
		for _, n := range l.Notes() {
			all[n.Phase+" "+n.ID] = n
		}
	}
	return all
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
	// State is on, shadow, off, closed or limited.
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

func (a *app) listHooksCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the hooks of this place, and which of them run",
		Long: `Lists the hooks that an agent has here: those of the command line itself, of the machine's and the user's settings, of the
project and of spaces. One that is closed is a gate that denies whatever it matches, because it may not run; the reason is
told below.`,
		Example: "  belay hooks list",
		Args:    arguments(0, 0, "list takes none"),
		RunE: a.looking(func(_ context.Context, v *seen, _ []string) error {
			notes := v.notes()
			var t table
			t.add("HOOK", "PHASE", "RUNS", "FROM", "STATE")
			var told []string
			for _, sub := range v.runtime.Subscriptions() {
				line := lineOf(sub, notes)
				if asJSON {
					if err := a.printJSON(line); err != nil {
						return err
					}
					continue
				}
				t.add(line.ID, line.Phase, line.Kind, a.shownOrigin(v.settings, line.Origin), line.State)
				if line.Reason != "" {
					told = append(told, fmt.Sprintf("%s: %s", line.ID, line.Reason))
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

func lineOf(sub hook.Subscription, notes map[string]space.Note) hookLine {
	o := sub.Options()
	line := hookLine{ID: sub.ID(), Phase: sub.Phase().Name(), Kind: string(o.Kind), Origin: o.Origin, State: "on"}
	if o.Shadow {
		line.State = "shadow"
	}
	if o.Disabled {
		line.State = "off"
	}
	if n, ok := notes[line.Phase+" "+line.ID]; ok {
		switch line.Reason = n.Reason; {
		case n.Closed:
			line.State = "closed"
		case n.Limited:
			line.State = "limited"
		}
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
			notes := v.notes()
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
				a.drawPlan(v.settings, plan, notes)
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
func (a *app) drawPlan(s *config.Loaded, plan hook.Plan, notes map[string]space.Note) {
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
		if n, ok := notes[plan.Phase+" "+e.ID]; ok && n.Closed {
			state = "closed: it may not run"
		}
		t.add(rail, fmt.Sprint(e.Position), e.ID, cmp.Or(e.Match, "everything"), runs, state, a.shownOrigin(s, e.Origin), order(e))
	}
	_ = t.write(a.out, nil) // as other lines of it
	if len(plan.Disabled) > 0 {
		fmt.Fprintf(a.out, "  %s\n", a.onOut.dim("off: "+strings.Join(plan.Disabled, ", ")))
	}
}

// order says what put a hook in its place.
func order(e hook.PlanEntry) string {
	if len(e.After) > 0 {
		return "after " + strings.Join(e.After, ", ")
	}
	return e.Why
}

func (a *app) tryHookCommand() *cobra.Command {
	var input, phase string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "try ID --input FILE",
		Short: "Run one hook on an input, and show exactly what would happen",
		Long: `Runs one hook of this place on an input, by itself, as a turn would: with its timeout, its environment and its sandbox, and
only if it may run. FILE has the phase's input as JSON ("-" is standard input); "belay hooks schema PHASE" says what it is made of.`,
		Example: `  belay hooks try project/no-prod --input call.json
  echo '{"tool": "write", "input": {"path": "/srv/prod/x"}}' | belay hooks try project/no-prod --input -`,
		Args:              arguments(1, 1, "name one hook: `belay hooks list` lists them"),
		ValidArgsFunction: a.completeHooks,
		RunE: a.looking(func(ctx context.Context, v *seen, args []string) error {
			sub, err := v.find(args[0], phase)
			if err != nil {
				return err
			}
			data, err := a.readInput(input)
			if err != nil {
				return err
			}
			return a.tryHook(ctx, v, sub, data, asJSON)
		}),
	}
	cmd.Flags().StringVar(&input, "input", "", "a file with the phase's input as JSON, or - for standard input")
	cmd.Flags().StringVar(&phase, "phase", "", "the phase, if the hook has several")
	jsonFlag(cmd, &asJSON, "print one JSON object")
	complete(cmd, "phase", phaseNames())
	return cmd
}

// completeHooks completes the ids of hooks.
func (a *app) completeHooks(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	v, err := a.seeHooks(context.Background())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer func() { _ = v.close(context.Background()) }() // nothing was started
	var ids []string
	for _, sub := range v.runtime.Subscriptions() {
		ids = append(ids, sub.ID())
	}
	return slices.Compact(slices.Sorted(slices.Values(ids))), cobra.ShellCompDirectiveNoFileComp
}

// find finds a hook by its id, and by its phase if the id has several.
func (v *seen) find(id, phase string) (hook.Subscription, error) {
	var found []hook.Subscription
	var ids, phases []string
	for _, sub := range v.runtime.Subscriptions() {
		ids = append(ids, sub.ID())
		if sub.ID() == id && (phase == "" || sub.Phase().Name() == phase) {
			found, phases = append(found, sub), append(phases, sub.Phase().Name())
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return hook.Subscription{}, usage("there is no hook %q%s: `belay hooks list` lists them", id, near.Hint(id, ids))
	default:
		return hook.Subscription{}, usage("hook %q is at %s: choose one with --phase", id, strings.Join(phases, " and "))
	}
}

// readInput reads the input of a phase.
func (a *app) readInput(file string) (json.RawMessage, error) {
	var data []byte
	var err error
	switch file {
	case "":
		return json.RawMessage("{}"), nil
	case "-":
		data, err = io.ReadAll(io.LimitReader(a.in, 8<<20))
	default:
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, usage("--input: %w", err)
	}
	if data = bytes.TrimSpace(data); !json.Valid(data) {
		return nil, usage("--input: it is not JSON")
	}
	return data, nil
}

// tryHook asks one hook alone.
func (a *app) tryHook(ctx context.Context, v *seen, sub hook.Subscription, input json.RawMessage, asJSON bool) error {
	if sub.Options().Disabled {
		reason := "its file says so"
		if n, ok := v.notes()[sub.Phase().Name()+" "+sub.ID()]; ok {
			reason = n.Reason
		}
		return fmt.Errorf("hook %s is off: %s", sub.ID(), reason)
	}
	alone, err := hook.NewRuntime(belay.Phases(), &hook.RuntimeOptions{Grants: v.places.host.Grants, Queue: noQueue{}, Logger: a.logger()})
	if err != nil {
		return err
	}
	if _, err := alone.Install(sub.Alone()); err != nil {
		return err
	}
	x, err := explainInput(ctx, alone, sub.Phase().Name(), input)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(x)
	}
	a.tellExplanation(x)
	return nil
}

// explainInput asks hooks about an input.
func explainInput(ctx context.Context, runtime *hook.Runtime, phase string, input json.RawMessage) (x hook.Explanation, err error) {
	wire, err := belay.Wire(phase)
	if err != nil {
		return x, usage("%w", err)
	}
	snapshot := runtime.Snapshot()
	defer func() { err = errors.Join(err, snapshot.Release(context.WithoutCancel(ctx))) }()
	x, err = wire.Explain(ctx, snapshot, hook.Scope{Session: "try", Turn: "try-1", Step: 1, Agent: mainAgent}, input)
	if err != nil {
		return x, usage("%w: `belay hooks schema %s` says what fits", err, phase)
	}
	return x, nil
}

// tellExplanation tells who was asked, what each said, and what comes of it.
func (a *app) tellExplanation(x hook.Explanation) {
	for _, e := range x.Entries {
		what := "no opinion"
		switch {
		case !e.Asked:
			what = "not asked: " + e.Why
		case e.Why != "":
			what = e.Why
		case len(e.Said) > 0:
			what = string(e.Said)
		}
		if e.Asked {
			what += a.onOut.dim(fmt.Sprintf("  (%s)", e.Latency))
		}
		if e.Shadow {
			what += "  shadow: it changes nothing"
		}
		if e.Won {
			what += "  ← decides"
		}
		fmt.Fprintf(a.out, "%s  %s\n", e.ID, what)
	}
	if len(x.Entries) == 0 {
		fmt.Fprintln(a.out, "nobody is asked")
	}
	for _, d := range x.Diagnostics {
		fmt.Fprintf(a.out, "%s %s: %s\n", d.Level, d.Code, d.Message)
	}
	if x.Error != "" {
		fmt.Fprintf(a.out, "it fails: %s\n", x.Error)
	}
	merged := "nothing changes"
	if len(x.Merged) > 0 && string(x.Merged) != "{}" {
		merged = string(x.Merged)
	}
	fmt.Fprintf(a.out, "→ %s\n", merged)
}

func (a *app) explainHooksCommand() *cobra.Command {
	var tool, input, phase string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain --tool TOOL --input JSON",
		Short: "Ask the hooks about a call, and tell what each says and what wins",
		Long: `Asks every hook of this place about a call of a tool, or with --phase about the input of another phase, and tells who was
asked in which order, what each said, what won, and who was not asked and why. The hooks really run; the tool does not.`,
		Example: `  belay hooks explain --tool write --input '{"path": "/srv/prod/notes.md"}'
  belay hooks explain --phase user.prompt.submit --input '{"text": "hello"}'`,
		Args: arguments(0, 0, "the call is given by --tool and --input"),
		RunE: a.looking(func(ctx context.Context, v *seen, _ []string) error {
			given := json.RawMessage(cmp.Or(input, "{}"))
			if !json.Valid(given) {
				return usage("--input: it is not JSON")
			}
			switch {
			case phase == "" && tool == "":
				return usage("name the tool: --tool write --input '{…}', or a phase: --phase PHASE --input '{…}'")
			case phase != "" && tool != "":
				return usage("--tool and --phase exclude each other: give one of them")
			case tool != "":
				call, err := json.Marshal(map[string]any{"id": "call-1", "tool": tool, "input": given})
				if err != nil {
					return err
				}
				phase, given = belay.ToolPre.Name(), call
			}
			x, err := explainInput(ctx, v.runtime, phase, given)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(x)
			}
			a.tellExplanation(x)
			if tool != "" {
				fmt.Fprintln(a.out, a.onOut.dim("what the floor says: belay permit explain --tool "+tool+" --input '…'"))
			}
			return nil
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&tool, "tool", "", "the tool that is called")
	flags.StringVar(&input, "input", "", "what it is called with, as JSON")
	flags.StringVar(&phase, "phase", "", "another phase than tool.pre")
	jsonFlag(cmd, &asJSON, "print one JSON object")
	complete(cmd, "phase", phaseNames())
	return cmd
}

var hookID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func (a *app) newHookCommand() *cobra.Command {
	var phase, tools string
	var user bool
	cmd := &cobra.Command{
		Use:   "new ID",
		Short: "Write a hook to begin with: a file and a script",
		Long: `Writes a file that declares a hook, and the script that it runs, into .belay/hooks of the project, or with --user into the
user's settings. The script says what to do next. A hook of a project runs once it is trusted.`,
		Example: `  belay hooks new no-prod --tools write,edit
  belay hooks new greet --phase user.prompt.submit --user`,
		Args: arguments(1, 1, "give the hook an ID, such as no-prod"),
		RunE: func(_ *cobra.Command, args []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			if !hookID.MatchString(args[0]) {
				return usage("id %q: a hook's id is made of letters, digits, dots, hyphens and underscores", args[0])
			}
			if !slices.Contains(phaseNames(), phase) {
				return usage("there is no phase %q%s: `belay hooks phases` lists them", phase, near.Hint(phase, phaseNames()))
			}
			dir := filepath.Join(projectPlace(settings), "hooks")
			if user {
				if settings.UserDir == "" {
					return usage("--user: there is no directory for the user's settings: set HOME")
				}
				dir = filepath.Join(settings.UserDir, "hooks")
			}
			return a.newHook(settings, dir, args[0], phase, tools, user)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&phase, "phase", belay.ToolPre.Name(), "when it runs: `belay hooks phases` lists the phases")
	flags.StringVar(&tools, "tools", "", "only for these tools, between commas")
	flags.BoolVar(&user, "user", false, "for all projects of this user")
	complete(cmd, "phase", phaseNames())
	return cmd
}

func (a *app) newHook(s *config.Loaded, dir, id, phase, tools string, user bool) error {
	file, script := filepath.Join(dir, id+".yaml"), filepath.Join(dir, id+".sh")
	for _, path := range []string{file, script} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is there already: choose another id, or change it", shownPath(s, path))
		}
	}
	match := ""
	if tools != "" {
		match = "    match: { tools: [" + strings.Join(strings.FieldsFunc(tools, func(r rune) bool { return r == ',' || r == ' ' }), ", ") + "] }\n"
	}
	text := fmt.Sprintf("hooks:\n  - id: %s\n    phase: %s\n%s    run: ./%s.sh\n    timeout: 5s\n    shadow: true   # runs and is recorded, and changes nothing: take this line out when it does what it should\n", id, phase, match, id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(script, []byte(fmt.Sprintf(newScript, phase, phase)), 0o700); err != nil {
		return err
	}
	id, next := "project/"+id, "trust it:      belay trust\n"
	if user {
		id, next = strings.TrimPrefix(id, "project/"), ""
	}
	fmt.Fprintf(a.out, "%s\n%s\n\n%stry it:        belay hooks try %s --input call.json\nsee its place: belay hooks plan %s\n", shownPath(s, file), shownPath(s, script), next, id, phase)
	return nil
}

const newScript = `#!/bin/sh
# Standard input is one JSON object: {"phase": %q, "session": …, "input": …}. What is in "input":
#   belay hooks schema %s
# Exit 0 and print nothing: no opinion. Exit 2: deny, for the reason on standard error. Or print one JSON object:
#   {"decision": "deny", "reason": "…"}
call=$(cat)
case $call in
*/srv/prod/*)
  echo "production is off limits" >&2
  exit 2
  ;;
esac
`
