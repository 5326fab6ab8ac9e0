package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/convert"
	"github.com/belay-run/belay/internal/diff"
	"github.com/belay-run/belay/internal/visible"
	"github.com/spf13/cobra"
)

// importOptions are the flags of "import".
type importOptions struct {
	agent        string
	user         bool
	write, force bool
}

func (a *app) importCommand() *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import --agent AGENT",
		Short: "Convert another agent's setup to Belay's own files",
		Long: `Reads the hooks, permissions, MCP servers, agents, commands, skills and instructions of another agent, and converts them to
Belay's own files. It first shows every change, and everything that it could not translate. Then it asks, or writes if
--write is given. The other agent's files stay as they are, and scripts of hooks stay where they are.

It adds to belay.yaml and mcp.json, and does not change what is in them. It replaces another file that differs only with
--force. Without --user, it reads the files of this project. With --user, it reads your own.

You need not import anything to use these files: Belay reads most of them where they are.`,
		Example: `  belay import --agent claude-code
  belay import --agent gemini-cli --user --write`,
		Args: arguments(0, 0, "the agent is given by --agent"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.importSetup(cmd.Context(), &o) },
	}
	flags := cmd.Flags()
	var names []string
	for _, v := range dialect.Vendors() {
		names = append(names, string(v))
	}
	flags.StringVar(&o.agent, "agent", "", "the other agent: "+strings.Join(names, ", "))
	flags.BoolVar(&o.user, "user", false, "your own setup in the home directory, not the project's")
	flags.BoolVar(&o.write, "write", false, "write the files without a question")
	flags.BoolVar(&o.force, "force", false, "also replace files that differ")
	complete(cmd, "agent", names)
	return cmd
}

func (a *app) importSetup(ctx context.Context, o *importOptions) error {
	if o.agent == "" {
		return usage("name the agent: --agent claude-code, codex, gemini-cli, cursor or copilot")
	}
	vendor, err := agentNamed(o.agent)
	if err != nil {
		return err
	}
	s, err := a.settings()
	if err != nil {
		return err
	}
	plan, err := convert.New(ctx, s, &convert.Options{Agent: vendor, User: o.user})
	if err != nil {
		return err
	}
	if plan.Read == 0 {
		a.remarkf("there are no files of %s here", vendor.Title())
		return nil
	}
	writes, kept := a.showPlan(plan, o.force)
	if kept > 0 {
		defer a.remarkf("not written, because the text there differs: %s. --force writes them, too", visible.Counted(kept, "file"))
	}
	if writes == 0 {
		a.remarkf("nothing to write")
		return nil
	}
	if !o.write && !a.inTerminal {
		a.remarkf("nothing was written: add --write to write %s", visible.Counted(writes, "file"))
		return nil
	}
	if err := a.agree(ctx, o.write, "write "+visible.Counted(writes, "file")+"?"); err != nil {
		return err
	}
	written, err := plan.Write(o.force)
	hooks := false
	for _, file := range written {
		a.remarkf("wrote %s", assembly.ShownPath(s, file))
		hooks = hooks || strings.Contains(file, "/hooks/") || strings.HasSuffix(file, "mcp.json")
	}
	if err != nil {
		return err
	}
	if hooks && !o.user {
		a.remarkf("next:  belay check\n       belay trust .belay      hooks and servers run only after that")
	}
	return nil
}

// showPlan shows what an import changes. It returns how many files it would write, and how
// many differ and stay.
func (a *app) showPlan(plan *convert.Plan, force bool) (writes, kept int) {
	for _, f := range plan.Files {
		from := f.Path
		if f.Before == nil {
			from = ""
		}
		shown, _, _ := diff.Unified(from, f.Path, string(f.Before), string(f.After))
		switch {
		case f.Replaces && !force:
			kept++
			fmt.Fprintf(a.out, "%s differs, and stays as it is. The import would change it like this:\n%s\n", f.Path, visible.All(shown))
		default:
			writes++
			fmt.Fprintf(a.out, "%s\n", visible.All(shown))
		}
	}
	for _, file := range plan.Same {
		fmt.Fprintf(a.out, "%s: nothing to change\n", file)
	}
	if len(plan.Notes) > 0 {
		fmt.Fprintf(a.out, "Not translated, or in another way (%d):\n", len(plan.Notes))
	}
	for _, n := range plan.Notes {
		fmt.Fprintf(a.out, "  %s: %s\n", visible.OneLine(n.From), visible.All(strings.ReplaceAll(strings.TrimSpace(n.Message), "\n", "\n    ")))
	}
	return writes, kept
}
