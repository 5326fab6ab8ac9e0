package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/toolbox"
)

// openTools makes the tools that the settings name, in the project's directory.
// Results that are too long are spilled into a directory that they can read. The
// floor has commands confined.
func openTools(settings *config.Loaded, floor *floor, spill string) (tools []belay.Tool, closeTools func() error, err error) {
	var roots []*os.Root
	closeTools = func() error {
		var problems []error
		for _, root := range roots {
			problems = append(problems, root.Close())
		}
		return errors.Join(problems...)
	}
	for _, dir := range append([]string{settings.Project, spill}, present(settings.Permit.Roots)...) {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("open what the tools work on: %w", err), closeTools())
		}
		roots = append(roots, root)
	}
	all := toolbox.All(roots[0], &toolbox.Options{Extra: roots[1:], Shell: &toolbox.ShellOptions{Confine: withoutKeys(settings, floor.confine)}})
	if settings.Tools == nil {
		return all, closeTools, nil
	}
	var names []string
	for _, tool := range all {
		name := tool.Declaration().Name
		names = append(names, name)
		if slices.Contains(settings.Tools, name) {
			tools = append(tools, tool)
		}
	}
	names = append(names, toolbox.AskUserTool) // which an extension brings
	for _, wanted := range settings.Tools {
		if !slices.Contains(names, wanted) {
			problem := usage("%s: there is no tool %q%s: there are %s", settings.From("tools"), wanted, near.Hint(wanted, names), strings.Join(names, ", "))
			return nil, nil, errors.Join(problem, closeTools())
		}
	}
	return tools, closeTools, nil
}
