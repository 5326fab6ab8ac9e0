package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/phasejson"
)

func (a *app) hooksCommand() *cobra.Command {
	hooks := parent(&cobra.Command{
		Use:   "hooks",
		Short: "List, order, test and explain hooks",
		Long: `A hook is a handler on a phase, in Go or declared in a file. With these commands you list the hooks of an agent in this
directory, see their order, write a new one and try it, look up phases and their schemas, and look up diagnostic codes.

The id of a project's hook begins with project/. The id of a space's hook begins with the id of the space.`,
		Example: `  belay hooks list
  belay hooks plan tool.pre
  belay hooks explain --tool write --input '{"path": "/srv/prod/x"}'
  belay hooks schema tool.pre`,
	})
	hooks.AddCommand(a.listHooksCommand(), a.planHooksCommand(), a.newHookCommand(), a.tryHookCommand(), a.testHooksCommand(), a.explainHooksCommand(), a.phasesCommand(), a.schemaCommand(), a.codesCommand())
	return hooks
}

func (a *app) phasesCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "phases",
		Short:   "List the phases in the order of a turn",
		Long:    "Lists the phases in the order in which a turn reaches them. Shows the kind of each phase, its default failure mode, and what a handler may do.",
		Example: "  belay hooks phases",
		Args:    arguments(0, 0, "phases takes no arguments"),
		RunE: func(*cobra.Command, []string) error {
			var t table
			t.add("PHASE", "KIND", "FAILS", "HANDLER MAY")
			for _, p := range belay.Phases() {
				t.add(p.Name(), p.Info().Kind.String(), p.Info().Failure.String(), p.Info().May)
			}
			return t.write(a.out, a.onOut.dim)
		},
	}
}

// phaseNames returns the wire names of the phases.
func phaseNames() []string {
	var names []string
	for _, p := range belay.Phases() {
		names = append(names, p.Name())
	}
	return names
}

func completePhases(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return phaseNames(), cobra.ShellCompDirectiveNoFileComp
}

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "schema PHASE",
		Short:             "Print the JSON Schemas of a phase",
		Long:              "Prints one JSON object with two schemas: the input that handlers of the phase get, and the answer that they may give.",
		Example:           "  belay hooks schema tool.pre",
		Args:              arguments(1, 1, "name one PHASE: `belay hooks phases` lists them"),
		ValidArgsFunction: completePhases,
		RunE: func(_ *cobra.Command, args []string) error {
			schema, err := phasejson.Describe(args[0])
			if err != nil {
				return usage("%w%s", err, near.Hint(args[0], phaseNames()))
			}
			out := json.NewEncoder(a.out)
			out.SetIndent("", "  ")
			if err := out.Encode(schema); err != nil {
				return fmt.Errorf("schema: %w", err)
			}
			return nil
		},
	}
}

func codeNames() []string {
	var names []string
	for _, c := range codes.All() {
		names = append(names, string(c.Code))
	}
	return names
}

func (a *app) codesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "codes [CODE]",
		Short: "Explain the diagnostic codes",
		Long:  "Lists the codes that records and diagnostics contain, with their meaning. With a CODE, explains this code and what to do about it.",
		Example: `  belay hooks codes
  belay hooks codes hook.timeout`,
		Args: arguments(0, 1, "codes takes one CODE at most"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return codeNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.explainCode(args[0])
			}
			var t table
			t.add("CODE", "LEVEL", "MEANING")
			for _, c := range codes.All() {
				t.add(string(c.Code), fmt.Sprint(c.Level), c.Meaning)
			}
			return t.write(a.out, a.onOut.dim)
		},
	}
}

func (a *app) explainCode(code string) error {
	for _, c := range codes.All() {
		if string(c.Code) == code {
			_, err := fmt.Fprintf(a.out, "%s (%s)\n  %s\n  %s\n", c.Code, c.Level, c.Meaning, c.Remedy)
			return err
		}
	}
	return usage("there is no code %q%s: `belay hooks codes` lists them", code, near.Hint(code, codeNames()))
}
