package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// completionCommand replaces cobra's own command, because that one has no examples.
func (a *app) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a completion script for bash, zsh, fish or powershell",
		Long: `Prints the script that makes a shell complete commands, flags, sessions, modes and phases.
Load it in the shell's start-up file, or put it where the shell looks for such scripts.`,
		Example: `  # bash, in this shell and in new shells
  source <(belay completion bash)
  belay completion bash > ~/.local/share/bash-completion/completions/belay
  # zsh: a directory of $fpath
  belay completion zsh > "${fpath[1]}/_belay"
  # fish
  belay completion fish > ~/.config/fish/completions/belay.fish`,
		ValidArgs: shells,
		Args:      arguments(1, 1, "name a shell: bash, zsh, fish or powershell"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			var err error
			switch args[0] {
			case "bash":
				err = root.GenBashCompletionV2(out, true)
			case "zsh":
				err = root.GenZshCompletion(out)
			case "fish":
				err = root.GenFishCompletion(out, true)
			case "powershell":
				err = root.GenPowerShellCompletionWithDesc(out)
			default:
				return usage("there is no completion for %q: name bash, zsh, fish or powershell", args[0])
			}
			if err != nil {
				return fmt.Errorf("completion: %w", err)
			}
			return nil
		},
	}
}
