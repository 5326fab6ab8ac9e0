package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/spf13/cobra"
)

// inTurnsOf is the help text of --agent.
const inTurnsOf = "as in the turns of this declared agent, with the hooks that it declares"

// agentFlag adds the flag --agent, which names a declared agent.
func (a *app) agentFlag(cmd *cobra.Command, name *string, what string) {
	cmd.Flags().StringVar(name, "agent", "", what)
	_ = cmd.RegisterFlagCompletionFunc("agent", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) { // no error: the flag exists
		return a.agentNames(), cobra.ShellCompDirectiveNoFileComp
	})
}

// seeHooks installs the hooks that an agent here would have, without an agent.
func (a *app) seeHooks(ctx context.Context) (*inspect.Hooks, error) {
	settings, err := a.settings()
	if err != nil {
		return nil, err
	}
	return inspect.OpenHooks(ctx, a.assembler(), settings)
}

// looking returns a cobra function that calls look with the hooks of this project.
func (a *app) looking(look func(ctx context.Context, v *inspect.Hooks, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) (err error) {
		v, err := a.seeHooks(cmd.Context())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, v.Close(cmd.Context())) }()
		return look(cmd.Context(), v, args)
	}
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
		Args:    arguments(0, 0, "list takes none"),
		RunE: a.looking(func(_ context.Context, v *inspect.Hooks, _ []string) error {
			check, err := inspect.NewHookCheck(v.Settings)
			if err != nil {
				return err
			}
			out := a.newList(asJSON, "HOOK", "PHASE", "RUNS", "FROM", "STATE")
			var told []string
			for _, line := range v.List(check) {
				out.add(line, line.ID, line.Phase, line.Kind, a.shownOrigin(v.Settings, line.Origin)+ofAgent(line.Agent), line.State)
				if line.Reason != "" {
					told = append(told, fmt.Sprintf("%s: %s", line.ID, line.Reason))
				}
				for _, w := range line.Warnings {
					told = append(told, fmt.Sprintf("%s: %s", line.ID, a.onOut.yellow(w)))
				}
			}
			a.assembler().ReportUnheeded(v.Settings, v.Places)
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

// ofAgent returns a suffix with the agent that declares a hook, or "".
func ofAgent(agent string) string {
	if agent == "" {
		return ""
	}
	return " (agent " + agent + ")"
}

// shownOrigin returns where a hook comes from: its file and line, or the kind of its
// origin.
func (a *app) shownOrigin(s *config.Loaded, o hook.Origin) string {
	if o.File == "" {
		return o.Kind.String()
	}
	return fmt.Sprintf("%s:%d", assembly.ShownPath(s, o.File), o.Line)
}
