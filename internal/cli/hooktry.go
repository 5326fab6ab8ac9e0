package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/phasejson"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/space"
	"github.com/spf13/cobra"
)

func (a *app) tryHookCommand() *cobra.Command {
	var input, phase, agent string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "try ID --input FILE",
		Short: "Run one hook on an input",
		Long: `Runs one hook on an input, without other hooks. It runs as in a turn: with its timeout, its environment and its sandbox, and
only if it is allowed to run. FILE contains the phase's input as JSON ("-" is standard input); "belay hooks schema PHASE" prints its schema.`,
		Example: `  belay hooks try project/no-prod --input call.json
  belay hooks try project/no-prod --input - < call.json`,
		Args:              arguments(1, 1, "name one hook: `belay hooks list` lists them"),
		ValidArgsFunction: a.completeHooks,
		RunE: a.looking(func(ctx context.Context, v *inspect.Hooks, args []string) error {
			sub, err := findHook(v, args[0], phase, agent)
			if err != nil {
				return err
			}
			data, err := a.readInput(input)
			if err != nil {
				return err
			}
			return a.tryHook(ctx, v, sub, cmp.Or(agent, assembly.MainAgent), data, asJSON)
		}),
	}
	cmd.Flags().StringVar(&input, "input", "", "a file with the phase's input as JSON, or - for standard input")
	cmd.Flags().StringVar(&phase, "phase", "", "the phase, if the hook has several")
	a.agentFlag(cmd, &agent, "run the hook of this declared agent, if several hooks have this id")
	jsonFlag(cmd, &asJSON, "print one JSON object")
	complete(cmd, "phase", phaseNames())
	return cmd
}

func (a *app) completeHooks(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	v, err := a.seeHooks(context.Background())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer func() { _ = v.Close(context.Background()) }() // ignore errors: no hook has run
	var ids []string
	for _, sub := range v.Runtime.Subscriptions() {
		ids = append(ids, sub.ID())
	}
	for _, h := range v.OfAgents {
		ids = append(ids, h.Sub.ID())
	}
	return slices.Compact(slices.Sorted(slices.Values(ids))), cobra.ShellCompDirectiveNoFileComp
}

// findHook finds a hook by its id. If several hooks have this id, phase and agent select one of
// them.
func findHook(v *inspect.Hooks, id, phase, agent string) (hook.Subscription, error) {
	var found []hook.Subscription
	var ids, phases []string
	subs, place := v.Runtime.Subscriptions(), (*space.Space)(nil)
	if agent != "" {
		d, err := assembly.FindAgent(v.Settings, agent)
		if err != nil {
			return hook.Subscription{}, err
		}
		subs, place = nil, v.Places.Of(d.Path)
	}
	for _, h := range v.OfAgents {
		if agent == "" || h.Agent == agent && h.Place == place {
			subs = append(subs, h.Sub)
		}
	}
	for _, sub := range subs {
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
		if len(slices.Compact(slices.Sorted(slices.Values(phases)))) < len(phases) {
			return hook.Subscription{}, usage("several hooks at %s have the id %q: `belay hooks list` lists them; choose one with --agent NAME, --phase PHASE or both", strings.Join(slices.Compact(phases), " and "), id)
		}
		return hook.Subscription{}, usage("hook %q runs at %s: choose one phase with --phase", id, strings.Join(phases, " and "))
	}
}

// readInput reads the JSON input of a phase from a file or from standard input.
func (a *app) readInput(file string) (json.RawMessage, error) {
	var data []byte
	var err error
	switch file {
	case "":
		return nil, usage("give the input: --input FILE, or --input - for standard input; `belay hooks schema PHASE` prints its schema")
	case "-":
		data, err = io.ReadAll(io.LimitReader(a.in, 8<<20))
	default:
		data, err = os.ReadFile(a.at(file))
	}
	if err != nil {
		return nil, usage("--input: %w", err)
	}
	if data = bytes.TrimSpace(data); len(data) == 0 {
		return nil, usage("--input is empty: give the input of the phase as JSON")
	}
	if !json.Valid(data) {
		return nil, usage("--input is not JSON")
	}
	return data, nil
}

// tryHook runs one hook without the other hooks.
func (a *app) tryHook(ctx context.Context, v *inspect.Hooks, sub hook.Subscription, agent string, input json.RawMessage, asJSON bool) error {
	note, noted := v.Notes().Of(sub.Phase().Name(), sub.ID(), sub.Options().Origin)
	if sub.Options().Disabled {
		reason := "its file says enabled: false"
		if noted {
			reason = note.Reason
		}
		return fmt.Errorf("hook %s was not run: %s", sub.ID(), reason)
	}
	if err := a.tellTool(v, calledTool(input)); err != nil {
		return err
	}
	alone, err := hook.NewRuntime(belay.Phases(), &hook.RuntimeOptions{Grants: v.Places.Host.Grants, Queue: inspect.NoQueue{}, Logger: a.logger()})
	if err != nil {
		return err
	}
	if _, err := alone.Install(sub.Alone()); err != nil {
		return err
	}
	x, err := explainInput(ctx, alone, sub.Phase().Name(), agent, input)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(x)
	}
	a.tellExplanation(v, x)
	if noted && note.Closed {
		a.remarkf("the program of this hook was not run: %s", note.Reason)
	}
	return nil
}

// calledTool returns the name of the tool in the input of a phase, or "".
func calledTool(input json.RawMessage) string {
	var call struct {
		Tool string `json:"tool"`
	}
	if json.Unmarshal(input, &call) != nil {
		return ""
	}
	return call.Tool
}

// tellTool prints a warning if no tool has this name.
func (a *app) tellTool(v *inspect.Hooks, name string) error {
	check, err := inspect.NewHookCheck(v.Settings)
	if err != nil {
		return err
	}
	if odd := check.Tool(name); odd != "" && name != "" {
		a.remarkf("%s %s", a.onErr.yellow("warning:"), odd)
	}
	return nil
}

// explainInput runs the hooks of a phase on an input and returns what each of them
// answered.
func explainInput(ctx context.Context, runtime *hook.Runtime, phase, agent string, input json.RawMessage) (x hook.Explanation, err error) {
	wire, err := phasejson.New(phase)
	if err != nil {
		return x, usage("%w", err)
	}
	snapshot := runtime.Snapshot()
	defer func() { err = errors.Join(err, snapshot.Release(context.WithoutCancel(ctx))) }()
	x, err = wire.Explain(ctx, snapshot, hook.Scope{Session: "try", Turn: "try-1", Step: 1, Agent: agent}, input)
	if err != nil {
		return x, usage("%w: `belay hooks schema %s` prints the schema of the input", err, phase)
	}
	return x, nil
}

// tellExplanation prints which hooks ran, what each of them answered, and the result.
func (a *app) tellExplanation(v *inspect.Hooks, x hook.Explanation) {
	owners := make(map[string]string)
	for _, sub := range v.Runtime.Subscriptions() {
		if sub.Phase().Name() == x.Phase {
			owners[sub.ID()] = v.Owner(sub)
		}
	}
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
			what += "  shadow mode: Belay ignores this answer"
		}
		if e.Won {
			what += "  ← decides"
		}
		fmt.Fprintf(a.out, "%s%s  %s\n", e.ID, ofAgent(owners[e.ID]), what)
	}
	if len(x.Entries) == 0 {
		fmt.Fprintln(a.out, "no hook runs")
	}
	for _, d := range x.Diagnostics {
		fmt.Fprintf(a.out, "%s %s\n", d.Level, visible.All(oneLine(diagnosed(d))))
	}
	if x.Error != "" {
		fmt.Fprintf(a.out, "this phase fails: %s\n", x.Error)
	}
	merged := "nothing changes"
	if len(x.Merged) > 0 && string(x.Merged) != "{}" {
		merged = string(x.Merged)
	}
	fmt.Fprintf(a.out, "→ %s\n", merged)
}

// diagnosed returns a diagnostic as text, including its error. Records do not store that
// error.
func diagnosed(d hook.Diagnostic) string {
	if d.Code == codes.MatchFailed && d.Err != nil {
		return fmt.Sprintf("%s %s: its condition could not be evaluated, and a gate treats this as a match: %v (test a key with `has(args.KEY)`)", d.Code, d.Subscription, d.Err)
	}
	text := d.String()
	if d.Err == nil {
		return text
	}
	said := d.Err.Error()
	if safe, ok := errors.AsType[*hook.SafeError](d.Err); ok && safe.Message == d.Message {
		said = strings.TrimPrefix(strings.TrimPrefix(said, d.Message), ": ") // text already contains the message
	}
	if said == "" || said == d.Message {
		return text
	}
	return text + ": " + said
}

// ofOthers returns the hooks of a phase that agents declare. In a turn of the main agent
// these hooks are not asked.
func ofOthers(v *inspect.Hooks, phase string) []hook.Explained {
	var all []hook.Explained
	for _, h := range v.OfAgents {
		if v.Agent == "" && h.Sub.Phase().Name() == phase {
			all = append(all, hook.Explained{ID: h.Sub.ID(), Shadow: h.Sub.Options().Shadow, Why: fmt.Sprintf("it runs only in the turns of agent %s: add --agent %s", h.Agent, h.Agent)})
		}
	}
	return all
}

func (a *app) explainHooksCommand() *cobra.Command {
	var tool, input, phase, agent string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain --tool TOOL",
		Short: "Show what each hook answers to a call",
		Long: `Asks every hook in this directory about a tool call, or with --phase about the input of another phase. Shows which hooks
were asked, in which order, what each of them answered, and which answer won. Also shows which hooks were not asked, and why.
With --agent, the hooks that this agent declares are asked too. The hooks really run. The tool does not run.`,
		Example: `  belay hooks explain --tool write --input '{"path": "/srv/prod/x"}'
  belay hooks explain --agent reviewer --tool read --input '{"path": "a"}'
  belay hooks explain --phase user.prompt.submit --input '{"text": "hi"}'`,
		Args: arguments(0, 0, "the call is given by --tool and --input"),
		RunE: a.looking(func(ctx context.Context, v *inspect.Hooks, _ []string) error {
			given := json.RawMessage(cmp.Or(input, "{}"))
			if !json.Valid(given) {
				return usage("--input is not JSON")
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
			if err := v.As(ctx, agent); err != nil {
				return err
			}
			if err := a.tellTool(v, calledTool(given)); err != nil {
				return err
			}
			x, err := explainInput(ctx, v.Runtime, phase, cmp.Or(v.Agent, assembly.MainAgent), given)
			if err != nil {
				return err
			}
			for i := range x.Entries {
				if e := &x.Entries[i]; !e.Asked && e.Position == 0 { // the hook is not in the plan, because it does not run
					e.Why = v.WhyOff(phase, e.ID)
				}
			}
			x.Entries = append(x.Entries, ofOthers(v, phase)...)
			if asJSON {
				return a.printJSON(x)
			}
			a.tellExplanation(v, x)
			if tool != "" {
				fmt.Fprintln(a.out, a.onOut.dim("to see what the floor decides: belay permit explain --tool "+tool+" --input '…'"))
			}
			return nil
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&tool, "tool", "", "the tool that is called")
	flags.StringVar(&input, "input", "", "the input of the call, as JSON")
	flags.StringVar(&phase, "phase", "", "the phase, if it is not tool.pre")
	a.agentFlag(cmd, &agent, inTurnsOf)
	jsonFlag(cmd, &asJSON, "print one JSON object")
	complete(cmd, "phase", phaseNames())
	return cmd
}
