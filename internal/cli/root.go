package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/belay-run/belay/internal/near"
)

// root returns the command belay with all its subcommands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "belay",
		Short: "An agent runtime with typed hooks at every decision",
		Long: `Belay runs agents whose tools, approvals and policies are controlled by typed hooks.
Conversations are kept in a file of the project and survive a crash.`,
		Example: `  # a tour, without a key
  belay demo
  # talk with the agent in this directory
  belay
  # one task, also with text from a pipe
  belay "tidy the changelog"
  git diff | belay "review this change"
  # check what is missing
  belay doctor`,
	}
	a.openRoot(root)
	root.Version = version()
	root.SilenceErrors, root.SilenceUsage = true, true // Main prints errors
	root.CompletionOptions.DisableDefaultCmd = true    // see completionCommand
	root.SetHelpFunc(a.help)
	root.SetOut(a.out)
	root.SetErr(a.err)
	flags := root.PersistentFlags()
	flags.StringVarP(&a.dir, "dir", "C", "", "work in this directory instead of the current one")
	flags.StringVar(&a.store, "store", "", "keep sessions in this file, or in this database: postgres://…")
	flags.StringVar(&a.server, "server", "", "use the sessions of this server: https://… (see \"belay serve\")")
	flags.StringArrayVar(&a.mcp, "mcp", nil, "also use the MCP servers that this file declares")
	flags.BoolVar(&a.debug, "debug", false, "log what the runtime does to standard error")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return a.checkServerFlag(cmd) }
	root.SetFlagErrorFunc(unknownFlag)
	group := func(id, title string, commands ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: id, Title: title})
		for _, c := range commands {
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	group("work", "work", a.runCommand(), a.chatCommand(), a.resumeCommand(), a.approvalsCommand(), a.submitCommand(), a.workerCommand(), a.serveCommand(), a.acpCommand())
	group("look", "look back", a.sessionsCommand(), a.showCommand(), a.runsCommand(), a.auditCommand(), a.watchCommand(), a.workersCommand(), a.forkCommand(), a.rewindCommand(), a.memoryCommand(), a.backtestCommand())
	group("set", "set up", a.initCommand(), a.importCommand(), a.doctorCommand(), a.checkCommand(), a.configCommand(), a.modelsCommand(), a.skillsCommand(), a.agentsCommand(), a.mcpCommand(), a.permitCommand(), a.storeCommand(), a.tokenCommand(), a.consoleCommand(), a.channelsCommand(), a.hooksCommand(), a.hookCommand(), a.spaceCommand(), a.trustCommand(), a.demoCommand(), a.completionCommand(), a.uninstallCommand(), a.versionCommand())
	root.SetHelpCommandGroupID("set")
	return root
}

// openRoot makes belay alone open the chat, and belay with a text run the text as a task. The
// flags are those of "belay run" and "belay chat". A single word is never a task: it is more
// likely a misspelled command.
func (a *app) openRoot(root *cobra.Command) {
	var o runOptions
	root.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 && (args[0] == "-" || strings.ContainsAny(strings.TrimSpace(args[0]), " \t\n")) {
			return nil
		}
		return knownCommand(cmd, args)
	}
	flags := root.Flags()
	flags.BoolVarP(&o.goOn, "continue", "c", false, "continue the last session")
	flags.StringVarP(&o.session, "session", "s", "", "continue this session (its id, or a prefix of the id)")
	a.agentFlag(root, &o.agent, "run this declared agent; by default, the agent that the settings describe")
	o.formatFlags(root)
	o.settingFlags(root)
	exclusive(root, "continue", "session")
	exclusive(root, "json", "output-format")
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && a.hasInput() {
			text, err := a.standardInput(cmd.Context(), patienceForInput)
			if err != nil {
				return err
			}
			if strings.TrimSpace(text) != "" {
				args = []string{text}
			}
		}
		switch {
		case len(args) == 1:
			return a.run(cmd, &o, args)
		case !a.inTerminal || !a.outTerminal:
			return cmd.Help()
		case o.json || o.format != formats[0]:
			return usage("the chat prints no JSON: give a task, in quotes")
		default:
			return chatError(a.chat(cmd, &o))
		}
	}
}

// parent sets up a command that only has subcommands. Without a subcommand it prints its
// help.
func parent(c *cobra.Command) *cobra.Command {
	c.Args = knownCommand // reject a misspelled subcommand instead of printing the help
	c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return c
}

// knownCommand returns an error for an unknown subcommand.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			known = append(known, c.Name())
		}
	}
	return &exitError{
		code: exitUsage,
		err:  fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), near.Hint(args[0], known)),
		hint: "see: " + cmd.CommandPath() + " --help",
	}
}

// unknownFlag rewrites cobra's error about a flag. It suggests a flag with a similar name.
func unknownFlag(cmd *cobra.Command, err error) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "unknown flag: --"); ok {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if like := near.Names(name, known, 1); len(like) > 0 {
			text += fmt.Sprintf(" (did you mean --%s?)", like[0])
		}
	}
	return &exitError{code: exitUsage, err: fmt.Errorf("%s", text), hint: "see: " + cmd.CommandPath() + " --help"}
}

// arguments returns a function that checks the number of arguments. wanted is the advice in
// its error.
func arguments(least, most int, wanted string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		problem := "too many arguments"
		if len(args) < least {
			problem = "an argument is missing"
		}
		if len(args) > most {
			problem += fmt.Sprintf(": %q", args[most:])
		}
		return &exitError{code: exitUsage, err: fmt.Errorf("%s: %s", problem, wanted), hint: "see: " + cmd.CommandPath() + " --help"}
	}
}

// exclusive makes a command reject more than one of these flags.
func exclusive(cmd *cobra.Command, flags ...string) {
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		var given []string
		for _, name := range flags {
			if cmd.Flags().Changed(name) {
				given = append(given, "--"+name)
			}
		}
		if len(given) > 1 {
			return usage("%s exclude each other: give one of them", strings.Join(given, " and "))
		}
		if before != nil {
			return before(cmd, args)
		}
		return nil
	}
}
