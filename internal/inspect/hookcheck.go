package inspect

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/memory"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/space"
	"github.com/belay-run/belay/subagent"
	"github.com/belay-run/belay/toolbox"
)

// HookCheck finds problems of hooks that are not mistakes. For example, a hook may be for
// another machine, or for a tool that does not exist yet.
type HookCheck struct {
	names []string // the tools of an agent here, except those of MCP servers
}

// NewHookCheck returns a check for the tools of an agent here.
func NewHookCheck(s *config.Loaded) (*HookCheck, error) {
	root, err := os.OpenRoot(s.Project)
	if err != nil {
		return nil, fmt.Errorf("list the tools: %w", err)
	}
	defer func() { _ = root.Close() }() // ignore errors: only the names of the tools are used
	c := &HookCheck{names: []string{
		toolbox.AskUserTool, subagent.InvokeTool, subagent.DelegateTool, skill.ReadTool, skill.InvokeTool,
		memory.SearchTool, memory.LookupTool, memory.RememberTool, memory.ForgetTool,
	}}
	for _, tool := range toolbox.New(root, nil).Tools() {
		c.names = append(c.names, tool.Declaration().Name)
	}
	slices.Sort(c.names)
	return c, nil
}

// Tool returns a warning if no tool matches a name or a pattern, or else "". It accepts
// every name of the form server__tool, because the tools of MCP servers are unknown until
// the servers start.
func (c *HookCheck) Tool(pattern string) string {
	covers := func(name string) bool {
		ok, err := path.Match(strings.ReplaceAll(pattern, "[!", "[^"), name)
		return ok || err != nil // the loader reports an invalid pattern
	}
	if assembly.OfServer(pattern) || slices.ContainsFunc(c.names, covers) {
		return ""
	}
	if ours, ok := assembly.ForeignName(pattern); ok {
		return fmt.Sprintf("no tool has the name %q here: Belay calls it %s", pattern, ours)
	}
	return fmt.Sprintf("no tool %q here%s", pattern, near.Hint(pattern, c.names))
}

// Tools returns a warning for each tool in a match that does not exist.
func (c *HookCheck) Tools(m hook.Match) []string {
	var odd []string
	for _, pattern := range slices.Concat(m.Tools, m.Labels["tool"]) {
		if said := c.Tool(pattern); said != "" {
			odd = append(odd, "match: "+said)
		}
	}
	return odd
}

// All returns the warnings about all hooks here, and about files that are not read.
func (c *HookCheck) All(v *Hooks) []string {
	odd, ids := append(assembly.Unheeded(v.Settings, v.Places), v.Places.Remarks...), []string(nil)
	for _, line := range v.List(c) {
		if line.Origin.File != "" {
			ids = append(ids, line.ID)
		}
		for _, said := range line.Warnings {
			odd = append(odd, fmt.Sprintf("%s:%d: hook %s: %s", assembly.ShownPath(v.Settings, line.Origin.File), line.Origin.Line, line.ID, said))
		}
	}
	for _, p := range v.Places.All {
		for _, d := range p.Programs() {
			if said := missingProgram(d); said != "" && !d.Options.Disabled {
				odd = append(odd, fmt.Sprintf("%s:%d: hook %s: %s", assembly.ShownPath(v.Settings, d.File), d.Line, PrefixedID(p, d), said))
			}
		}
	}
	for _, id := range v.Settings.Hooks.Disable {
		if _, isSwitch := assembly.HookSwitch(id); !isSwitch && !slices.Contains(ids, id) {
			odd = append(odd, fmt.Sprintf("%s: hooks.disable: no hook has the id %q%s", v.Settings.From("hooks.disable"), id, near.Hint(id, ids)))
		}
	}
	return odd
}

// shellWord matches the first word of a shell command, if the shell does not expand that
// word.
var shellWord = lazyregexp.New(`^\s*([A-Za-z0-9._+@%:,/-]+)(\s|;|$)`)

// shellWords are built-in commands and keywords of shells.
var shellWords = strings.Fields(". : alias bg break case cd command continue echo eval exec exit export false fg for if jobs kill local printf pwd read readonly return set shift test time times trap true type ulimit umask unset until wait while")

// missingProgram returns a warning if a program that a hook needs is missing on this
// machine, or else "".
func missingProgram(d *declare.Declaration) string {
	if len(d.Argv) == 0 {
		return ""
	}
	program := d.Argv[0]
	if len(d.Argv) == 3 && d.Argv[0] == "sh" && d.Argv[1] == "-c" {
		m := shellWord.FindStringSubmatch(d.Argv[2])
		if len(m) < 2 || slices.Contains(shellWords, m[1]) {
			return interpreters(d)
		}
		program = m[1]
	}
	if strings.Contains(program, "/") && !filepath.IsAbs(program) {
		return interpreters(d) // the program is in the directory of the hook's file, and loading checked that it exists
	}
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Sprintf("the program %s is not on this machine, so the hook will fail", program)
	}
	return interpreters(d)
}

// interpreters returns a warning if the interpreter of a hook's script is missing on this
// machine, or else "".
func interpreters(d *declare.Declaration) string {
	for _, script := range d.Scripts {
		words := firstLine(script)
		if len(words) == 0 {
			continue
		}
		program := words[0]
		if path.Base(program) == "env" && len(words) > 1 && !strings.HasPrefix(words[1], "-") {
			program = words[1]
		}
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Sprintf("%s, which %s needs, is not on this machine, so the hook will fail", program, filepath.Base(script))
		}
	}
	return ""
}

// firstLine returns the words after "#!" in the first line of a script.
func firstLine(script string) []string {
	f, err := os.Open(script)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // ignore errors: the file was only read
	line, _ := bufio.NewReaderSize(f, 256).ReadSlice('\n')
	rest, ok := strings.CutPrefix(string(line), "#!")
	if !ok {
		return nil
	}
	return strings.Fields(rest)
}

// PrefixedID returns the id of a hook with its prefix, such as project/no-prod.
func PrefixedID(place *space.Space, d *declare.Declaration) string {
	if prefix := place.Prefix(); prefix != "" {
		return prefix + "/" + d.ID
	}
	return d.ID
}
