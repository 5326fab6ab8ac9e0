package cli

import (
	"github.com/spf13/cobra"

	"github.com/belay-run/belay/internal/demo"
)

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Take a guided tour: a session in which hooks steer, stop and explain themselves",
		Long: `Runs a session in a scratch directory, with a model that plays a script: no key, no network, no set-up.
Hooks collect, rewrite, block and time out, the process that runs the turn is killed and another one continues it,
and the records of all of it are drawn as a timeline.`,
		Example: "  belay demo",
		Args:    arguments(0, 0, "demo takes none"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return demo.Run(cmd.Context(), a.out) },
	}
}
