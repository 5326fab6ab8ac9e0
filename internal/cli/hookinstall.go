package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/dialect/guard"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/diff"
	"github.com/belay-run/belay/internal/wholefile"
	"github.com/spf13/cobra"
)

// setupOptions are the flags of "hook install", "hook uninstall" and "hook status".
type setupOptions struct {
	agent         string
	user, project bool
	yes           bool
}

func (a *app) hookInstallCommand() *cobra.Command {
	var o setupOptions
	cmd := &cobra.Command{
		Use:   "install --agent AGENT",
		Short: "Make another agent ask Belay about its calls",
		Long: `Writes the configuration of another agent, so that it runs "belay hook" at its events. It shows the change first, and asks.
It does not change anything else in the file. "belay hook uninstall" undoes the change, also if the file was edited since.

With --project (the default), it writes the file of this project. With --user, it writes your own file, which applies to all
projects.`,
		Example: `  belay hook install --agent claude-code
  belay hook install --agent codex --user --yes`,
		Args: arguments(0, 0, "the agent is given by --agent"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.changeSetup(cmd.Context(), &o, func(s guard.Setup, text []byte) ([]byte, error) { return s.Install(text, belayWord()) })
		},
	}
	o.flags(cmd, true)
	return cmd
}

func (a *app) hookUninstallCommand() *cobra.Command {
	var o setupOptions
	cmd := &cobra.Command{
		Use:     "uninstall --agent AGENT",
		Short:   "Remove Belay from the configuration of another agent",
		Long:    `Removes what "belay hook install" wrote, and nothing else. It shows the change first, and asks.`,
		Example: "  belay hook uninstall --agent claude-code",
		Args:    arguments(0, 0, "the agent is given by --agent"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.changeSetup(cmd.Context(), &o, func(s guard.Setup, text []byte) ([]byte, error) { return s.Uninstall(text) })
		},
	}
	o.flags(cmd, true)
	return cmd
}

func (a *app) hookStatusCommand() *cobra.Command {
	var o setupOptions
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show which agents ask Belay",
		Long: `Shows for each agent whether the files of the project and of the user make it run "belay hook", and at which events they do
not.`,
		Example: `  belay hook status
  belay hook status --agent cursor`,
		Args: arguments(0, 0, "status takes flags only"),
		RunE: func(*cobra.Command, []string) error { return a.showSetups(&o) },
	}
	o.flags(cmd, false)
	return cmd
}

func (o *setupOptions) flags(cmd *cobra.Command, changes bool) {
	hookAgentFlag(cmd, &o.agent)
	cmd.Flags().BoolVar(&o.user, "user", false, "your own file, for all projects")
	cmd.Flags().BoolVar(&o.project, "project", false, "the file of this project")
	exclusive(cmd, "user", "project")
	if changes {
		cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	}
}

// setupFile returns the file of an agent that a command changes.
func (a *app) setupFile(s guard.Setup, user bool) (string, error) {
	if user {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find the home directory: %w", err)
		}
		return filepath.Join(home, filepath.FromSlash(s.User)), nil
	}
	settings, err := a.settings()
	if err != nil {
		return "", err
	}
	return filepath.Join(settings.Project, filepath.FromSlash(s.Project)), nil
}

// belayWord returns the shell word that runs this program: its name if the shell finds it,
// or else its path.
func belayWord() string {
	self, err := os.Executable()
	if err != nil {
		return "belay"
	}
	if found, err := exec.LookPath("belay"); err == nil {
		one, errOne := os.Stat(self)
		other, errOther := os.Stat(found)
		if errOne == nil && errOther == nil && os.SameFile(one, other) {
			return "belay"
		}
	}
	return quoted(self)
}

// readSetup reads a file of an agent. It returns nil if there is none.
func readSetup(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return text, nil
}

// changeSetup changes the file of an agent, after it has shown the change and asked.
func (a *app) changeSetup(ctx context.Context, o *setupOptions, change func(guard.Setup, []byte) ([]byte, error)) error {
	if o.agent == "" {
		return usage("name the agent: --agent %s", strings.Join(guard.Agents(), "|"))
	}
	vendor, err := agentNamed(o.agent)
	if err != nil {
		return err
	}
	setup, err := guard.SetupOf(vendor)
	if err != nil {
		return err
	}
	file, err := a.setupFile(setup, o.user)
	if err != nil {
		return err
	}
	if actual, err := filepath.EvalSymlinks(file); err == nil {
		file = actual // keep a link, and change the file that it leads to
	}
	before, err := readSetup(file)
	if err != nil {
		return err
	}
	after, err := change(setup, before)
	if err != nil {
		return usage("%s: %w", file, err)
	}
	if bytes.Equal(before, after) {
		a.remarkf("%s: nothing to change", file)
		return nil
	}
	shown, _, _ := diff.Unified(file, file, string(before), string(after))
	fmt.Fprint(a.out, shown)
	if err := a.agree(ctx, o.yes, "change "+file+"?"); err != nil {
		return err
	}
	if now, err := readSetup(file); err != nil || !bytes.Equal(now, before) {
		return errors.Join(fmt.Errorf("%s has changed meanwhile: run the command again", file), err)
	}
	if after == nil {
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("remove the configuration: %w", err)
		}
		a.remarkf("removed %s", file)
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("create the directory of the configuration: %w", err)
	}
	if err := writeSetup(file, after); err != nil {
		return err
	}
	a.remarkf("wrote %s", file)
	if err := a.tellTrustIsOver(file); err != nil {
		return err
	}
	if has, _, err := setup.Installed(after); err == nil && len(has) > 0 && setup.Note != "" {
		a.remarkf("%s", setup.Note)
	}
	return nil
}

// tellTrustIsOver says what to do if the directory of an agent was trusted before its file changed.
func (a *app) tellTrustIsOver(file string) error {
	settings, err := a.settings()
	if err != nil {
		return err
	}
	place := assembly.FindHookPlace(settings, filepath.Dir(file))
	if place == nil {
		return nil
	}
	if r, err := assembly.OpenTrust(settings).Lookup(assembly.RealDir(place.Dir)); err != nil || r == nil {
		return err
	}
	a.remarkf("you have trusted the hooks of this file before the change. For turns of Belay itself, run %#q again", place.Trust)
	return nil
}

// writeSetup writes a file and keeps its mode.
func writeSetup(file string, text []byte) error {
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(file); err == nil {
		mode = info.Mode().Perm()
	}
	if err := wholefile.Write(file, text); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	if err := os.Chmod(file, mode); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return nil
}

// agree returns nil if the user agrees, or if yes is set.
func (a *app) agree(ctx context.Context, yes bool, question string) error {
	if yes {
		return nil
	}
	if !a.inTerminal {
		return usage("this needs your agreement: run the command at a terminal, or add --yes")
	}
	fmt.Fprintf(a.err, "%s [y/N] ", question)
	a.forgetTyped()
	line, err := a.readLine(ctx)
	if err != nil {
		return err
	}
	if word := strings.ToLower(strings.TrimSpace(line)); word != "y" && word != "yes" {
		a.remarkf("nothing was changed")
		return &exitError{code: exitFailed}
	}
	return nil
}

// showSetups lists the files of the agents.
func (a *app) showSetups(o *setupOptions) error {
	vendors := dialect.Vendors()
	if o.agent != "" {
		vendor, err := agentNamed(o.agent)
		if err != nil {
			return err
		}
		vendors = []dialect.Vendor{vendor}
	}
	out := a.newList(false, "AGENT", "FOR", "STATE", "FILE")
	for _, vendor := range vendors {
		setup, err := guard.SetupOf(vendor)
		if err != nil {
			return err
		}
		for _, user := range []bool{false, true} {
			if o.user && !user || o.project && user {
				continue
			}
			file, err := a.setupFile(setup, user)
			if err != nil {
				return err
			}
			out.add(nil, string(vendor), map[bool]string{false: "project", true: "user"}[user], setupState(setup, file), file)
		}
	}
	return out.end("")
}

// setupState says whether a file makes the agent ask Belay.
func setupState(s guard.Setup, file string) string {
	text, err := readSetup(file)
	if err != nil {
		return "unknown: " + err.Error()
	}
	has, lacks, err := s.Installed(text)
	switch {
	case err != nil:
		return "unknown: " + err.Error()
	case len(has) == 0:
		return "not installed"
	case len(lacks) > 0:
		return "incomplete: no " + strings.Join(lacks, ", ")
	default:
		return "installed"
	}
}
