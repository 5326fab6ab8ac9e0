package cli

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belay-run/belay/acp"
)

func (a *app) acpCommand() *cobra.Command {
	var o runOptions
	var log string
	cmd := &cobra.Command{
		Use:   "acp",
		Short: "Let an editor drive the agent, with the Agent Client Protocol",
		Long: `Speaks the Agent Client Protocol on standard input and output, until the editor closes it. Editors start this command: see
docs/editors.md for Zed, the JetBrains IDEs and Neovim. A session works in the directory that the editor names, with the settings, hooks,
rules and skills of its project. Calls that need approval ask in the editor, and can also be decided with "belay approvals".

Nothing else is printed to standard output. With --log, a file gets everything that the runtime does.`,
		Example: `  belay acp
  belay acp --model anthropic/claude-sonnet-4-5 --log ~/belay-acp.log`,
		Args: arguments(0, 0, "acp takes flags only: the editor sends the tasks"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serveEditor(cmd, &o, log) },
	}
	cmd.Flags().StringVar(&log, "log", "", "append a log of everything to this file")
	o.settingFlags(cmd)
	return cmd
}

// serveEditor talks to the editor on standard input and output.
func (a *app) serveEditor(cmd *cobra.Command, o *runOptions, log string) error {
	if _, err := a.overruled(cmd, o); err != nil { // find mistakes in flags before the editor sends anything
		return err
	}
	opts := a.hostOptions(cmd, o)
	logger := a.serverLogger()
	if log != "" {
		file, err := os.OpenFile(a.at(log), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return usage("--log: %w", err)
		}
		defer func() { _ = file.Close() }() // ignore errors: the log has no reader here
		logger = slog.New(slog.NewTextHandler(io.MultiWriter(a.err, file), &slog.HandlerOptions{Level: slog.LevelDebug}))
		opts.Logger = logger
	}
	server := acp.New(acp.Hosts(opts), &acp.Options{Version: version(), Person: strings.TrimSuffix(who(), " (belay)"), Logger: logger})
	if err := server.Serve(cmd.Context(), closing{a.in}, standardOutput{a.out}); err != nil {
		return fmt.Errorf("acp: %w", err)
	}
	return nil
}
