package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/demo"
)

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "belay",
		Short: "An agent runtime whose every decision hangs on one typed hook runtime",
	}
	root.AddCommand(demoCommand(), hooksCommand())
	return root
}

func demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Take a guided tour: a session in which hooks steer, stop and explain themselves",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.Run(cmd.Context(), cmd.OutOrStdout())
		},
	}
}

func hooksCommand() *cobra.Command {
	hooks := &cobra.Command{
		Use:   "hooks",
		Short: "Look at phases, their inputs and answers, and diagnostic codes",
		Args:  cobra.NoArgs, // a misspelled subcommand is an error, not a request for help
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	hooks.AddCommand(phasesCommand(), schemaCommand(), codesCommand())
	return hooks
}

func phasesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "phases",
		Short: "List the phases, in the order a turn meets them",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 2, 0, 2, ' ', 0)
			fmt.Fprintln(w, "PHASE\tKIND\tFAILS\tHANDLER MAY")
			for _, p := range belay.Phases() {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", p.Name(), p.Kind(), p.DefaultFailure(), p.May())
			}
			return w.Flush()
		},
	}
}

func schemaCommand() *cobra.Command {
	var names []string
	for _, p := range belay.Phases() {
		names = append(names, p.Name())
	}
	return &cobra.Command{
		Use:       "schema PHASE",
		Short:     "Print the JSON Schemas of a phase's input and answer",
		Example:   "  belay hooks schema tool.pre",
		Args:      onePhase,
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			schema, err := belay.Schema(args[0])
			if err != nil {
				return err
			}
			out := json.NewEncoder(cmd.OutOrStdout())
			out.SetIndent("", "  ")
			return out.Encode(schema)
		},
	}
}

// onePhase wants the name of a phase, and says where to find one.
func onePhase(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("name one PHASE: `belay hooks phases` lists them")
	}
	return nil
}

func codesCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "codes [CODE]",
		Short:   "Explain the diagnostic codes, or one of them with what to do about it",
		Example: "  belay hooks codes hook.timeout",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return explainCode(cmd.OutOrStdout(), args[0])
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 2, 0, 2, ' ', 0)
			fmt.Fprintln(w, "CODE\tLEVEL\tMEANING")
			for _, c := range hook.Codes() {
				fmt.Fprintf(w, "%s\t%s\t%s\n", c.Code, c.Level, c.Meaning)
			}
			return w.Flush()
		},
	}
}

func explainCode(w io.Writer, code string) error {
	for _, c := range hook.Codes() {
		if string(c.Code) == code {
			_, err := fmt.Fprintf(w, "%s (%s)\n  %s\n  %s\n", c.Code, c.Level, c.Meaning, c.Remedy)
			return err
		}
	}
	return fmt.Errorf("there is no code %q: `belay hooks codes` lists them", code)
}
