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
// Results that are too long are spilled into a directory that they can read.
func openTools(settings *config.Loaded, spill string) (tools []belay.Tool, closeTools func() error, err error) {
	root, err := os.OpenRoot(settings.Project)
	if err != nil {
		return nil, nil, fmt.Errorf("open the project: %w", err)
	}
	if err := os.MkdirAll(spill, 0o700); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("make a place for long results: %w", err), root.Close())
	}
	spilled, err := os.OpenRoot(spill)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open the place for long results: %w", err), root.Close())
	}
	closeTools = func() error { return errors.Join(root.Close(), spilled.Close()) }
	all := toolbox.All(root, &toolbox.Options{Extra: []*os.Root{spilled}})
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
	for _, wanted := range settings.Tools {
		if !slices.Contains(names, wanted) {
			problem := usage("%s: there is no tool %q%s: there are %s", settings.From("tools"), wanted, near.Hint(wanted, names), strings.Join(names, ", "))
			return nil, nil, errors.Join(problem, closeTools())
		}
	}
	return tools, closeTools, nil
}
