package toolbox

import (
	"os"
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// Extension has the standard tools of a project. Its name is toolbox. Errors use this
// name for the owner of the tools, and belay.Options.Resources uses it for the kind of
// the tools. The extension adds to the prompt how to use the tools.
type Extension struct {
	tools     []belay.Tool
	snapshots *Snapshots
	files     *files
}

var (
	_ belay.ToolExtension   = (*Extension)(nil)
	_ belay.PromptExtension = (*Extension)(nil)
	_ belay.ScopeExtension  = (*Extension)(nil)
	_ belay.ForgetExtension = (*Extension)(nil)
)

// New makes the tools of a project. The caller owns the root and closes it when the tools are
// no longer used.
func New(root *os.Root, opts *Options) *Extension {
	var o Options
	if opts != nil {
		o = *opts
	}
	f := &files{project: newPlace(root), read: newMemory(rememberedFiles), snapshots: o.Snapshots, background: o.Background}
	for _, extra := range o.Extra {
		f.extra.add(newPlace(extra))
	}
	e := &Extension{[]belay.Tool{f.readTool(), f.listTool(), f.globTool(), f.grepTool()}, o.Snapshots, f}
	if o.ReadOnly {
		return e
	}
	e.tools = append(e.tools, f.writeTool(), f.editTool())
	if o.NoShell {
		return e
	}
	var shell ShellOptions
	if o.Shell != nil {
		shell = *o.Shell
	}
	if shell.Dir == "" {
		shell.Dir = f.project.dir
	}
	e.tools = append(e.tools, newShell(&shell, f).tool())
	return e
}

// Only returns an extension with only the named tools, for another agent. Both extensions
// share the record of which files each session has read.
func (e *Extension) Only(names ...string) *Extension {
	return &Extension{slices.DeleteFunc(slices.Clone(e.tools), func(t belay.Tool) bool { return !slices.Contains(names, t.Declaration().Name) }), e.snapshots, e.files}
}

// AddRoot adds a directory to [Options].Extra, also for the extensions that Only has returned.
// The caller owns the root and closes it when the tools are no longer used.
func (e *Extension) AddRoot(root *os.Root) { e.files.extra.add(newPlace(root)) }

// Name returns toolbox.
func (*Extension) Name() string { return "toolbox" }

// Tools returns the tools.
func (e *Extension) Tools() []belay.Tool { return slices.Clone(e.tools) }

// Prompt says how to use those tools that the agent may use.
func (e *Extension) Prompt(agent belay.AgentConfig) (fragment, resources string) {
	patterns, restricted := agent.Resources[e.Name()]
	if !restricted {
		patterns = []string{"*"}
	}
	names := e.named(patterns)
	among := func(these ...string) (found []string) {
		return slices.DeleteFunc(these, func(name string) bool { return !slices.Contains(names, name) })
	}
	var lines []string
	if looks := among("read", "list", "glob", "grep"); len(looks) > 0 {
		lines = append(lines, "Paths of files are relative to the project.")
		if len(among("shell")) > 0 {
			lines = append(lines, "To look at files, use "+words(looks)+", not shell commands.")
		}
	}
	if changes := among("write", "edit"); len(changes) > 0 && len(among("read")) > 0 {
		lines = append(lines, "Read a file before you change it with "+words(changes)+".")
	}
	return strings.Join(lines, " "), ""
}

// Narrow tells the model which of the tools it may use.
func (e *Extension) Narrow(_ belay.AgentConfig, allowed []string) (tools []string, line string) {
	if tools = e.named(allowed); len(tools) == 0 {
		return nil, "You may use none of the stock tools."
	}
	return tools, "Of the stock tools you may use only " + words(tools) + "."
}

// named returns the names of those tools that match one of the patterns.
func (e *Extension) named(patterns []string) (names []string) {
	for _, t := range e.tools {
		name := t.Declaration().Name
		if slices.ContainsFunc(patterns, func(pattern string) bool {
			ok, err := path.Match(pattern, name)
			return ok && err == nil
		}) {
			names = append(names, name)
		}
	}
	return names
}

// words returns a list in words: a, b and c.
func words(all []string) string {
	if last := len(all) - 1; last > 0 {
		return strings.Join(all[:last], ", ") + " and " + all[last]
	}
	return all[0]
}
