package assembly

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/toolbox"
	"github.com/belay-run/belay/webtool"
)

// openTools makes the stock tools that the settings name, for the project's directory.
// The tools may read long results in the directory spill. The floor confines commands.
func openTools(settings *config.Loaded, floor *Floor, snapshots *toolbox.Snapshots, background *toolbox.Background, spill string) (tools *toolbox.Extension, closeTools func() error, err error) {
	var roots []*os.Root
	closeTools = func() error {
		var problems []error
		for _, root := range roots {
			problems = append(problems, root.Close())
		}
		return errors.Join(problems...)
	}
	for _, dir := range append([]string{settings.Project, spill}, Existing(settings.Permit.Roots)...) {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("open the directories of the tools: %w", err), closeTools())
		}
		roots = append(roots, root)
	}
	all := toolbox.New(roots[0], &toolbox.Options{Extra: roots[1:], Snapshots: snapshots, Background: background, Shell: &toolbox.ShellOptions{Shell: shellProgram(), Confine: withoutKeys(settings, floor.confine)}})
	if settings.Tools == nil {
		return all, closeTools, nil
	}
	if err := UnknownTools(settings, namesOf(all)); err != nil {
		return nil, nil, errors.Join(err, closeTools())
	}
	return all.Only(settings.Tools...), closeTools, nil
}

// namesOf returns the names of the tools of an extension.
func namesOf(tools *toolbox.Extension) []string {
	var names []string
	for _, tool := range tools.Tools() {
		names = append(names, tool.Declaration().Name)
	}
	return names
}

// shellProgram returns the shell for commands: bash if it is installed, otherwise sh. The
// floor must know the shell, because bash and sh understand some text differently.
func shellProgram() string {
	if _, err := exec.LookPath("bash"); err == nil {
		return "bash"
	}
	return "sh"
}

// UnknownTools returns an error for each tool in the settings that does not exist.
func UnknownTools(settings *config.Loaded, names []string) error {
	names = append(slices.Clone(names), toolbox.AskUserTool, toolbox.TodoTool, toolbox.PlanTool, webtool.FetchTool) // extensions provide these tools
	if settings.Web.Search != "" {
		names = append(names, webtool.SearchTool)
	}
	var problems []error
	for _, wanted := range settings.Tools {
		if !slices.Contains(names, wanted) {
			problems = append(problems, mistake("%s: tools: %s", settings.From("tools"), unknownTool(wanted, names)))
		}
	}
	return errors.Join(problems...)
}

// DeclaredTools returns the declarations of the built-in tools.
func DeclaredTools(settings *config.Loaded) ([]belay.ToolDeclaration, error) {
	root, err := os.OpenRoot(settings.Project)
	if err != nil {
		return nil, fmt.Errorf("list the tools: %w", err)
	}
	defer func() { _ = root.Close() }() // ignore errors: only the declarations are used
	var all []belay.ToolDeclaration
	background := toolbox.NewBackground(nil)
	for _, tool := range slices.Concat(toolbox.New(root, &toolbox.Options{Background: background}).Tools(), background.Tools(), webtool.New(nil).Tools()) {
		all = append(all, tool.Declaration())
	}
	return all, nil
}

// todos returns the extension with the to-do list. It returns nothing if the settings leave
// the tool out.
func todos(s *config.Loaded) []belay.Extension {
	if s.Tools != nil && !slices.Contains(s.Tools, toolbox.TodoTool) {
		return nil
	}
	return []belay.Extension{toolbox.TodoList()}
}

// hasShell reports whether the agent has the shell, and so commands in the background.
func hasShell(tools []string) bool { return tools == nil || slices.Contains(tools, "shell") }

// questions returns the extension that lets the model ask the user. It returns nothing if
// the settings leave the tool out.
func questions(s *config.Loaded) []belay.Extension {
	if s.Tools != nil && !slices.Contains(s.Tools, toolbox.AskUserTool) {
		return nil
	}
	return []belay.Extension{toolbox.AskUser()}
}
