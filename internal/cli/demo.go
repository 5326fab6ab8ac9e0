package cli

import (
	"github.com/spf13/cobra"

	"github.com/belay-run/belay/internal/demo"
	"github.com/belay-run/belay/internal/demo/whole"
)

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Take a guided tour: a session in which hooks steer and stop an agent",
		Long: `Runs a session in a scratch directory, with a model that plays a script: no key, no network, no set-up.
Hooks collect, rewrite, block and time out. The process that runs the turn is killed, and another process continues the
turn. At the end a timeline shows the records of all hooks.`,
		Example: "  belay demo",
		Args:    arguments(0, 0, "demo takes no arguments"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return demo.Run(cmd.Context(), a.out, whole.Options()) },
	}
}
