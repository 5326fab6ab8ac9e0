package vendorhook

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// argv returns the program of a hook. It returns false if the hook cannot run.
func (r *reader) argv(e *entry) ([]string, bool) {
	if e.args != nil { // without a shell
		argv := []string{r.filled(e.command)}
		for _, arg := range e.args {
			argv = append(argv, r.filled(arg))
		}
		return argv, true
	}
	switch e.shell {
	case "", "bash":
		if _, err := exec.LookPath("bash"); err != nil {
			return []string{"sh", "-c", e.command}, true
		}
		return []string{"bash", "-c", e.command}, true
	case "powershell":
		for _, name := range []string{"pwsh", "powershell"} {
			if _, err := exec.LookPath(name); err == nil {
				return []string{name, "-NoProfile", "-Command", e.command}, true
			}
		}
		r.refusef(e.line, "shell: powershell is not installed here, so this hook does not run")
		return nil, false
	default:
		r.refusef(e.line, "shell: there is no shell %q, so this hook does not run: write bash or powershell", e.shell)
		return nil, false
	}
}

// callsBelay reports whether a hook is the one that "belay hook install" writes. In a turn of
// Belay it would ask the same hooks and the same floor a second time, from inside the sandbox.
func (r *reader) callsBelay(e *entry) bool {
	line := strings.TrimSuffix(strings.TrimSpace(e.command), " || exit 2")
	program, ok := strings.CutSuffix(line, " hook --agent "+string(r.Vendor))
	if len(e.args) > 0 || !ok {
		return false
	}
	if n := len(program); n > 1 && program[0] == '\'' && program[n-1] == '\'' {
		program = program[1 : n-1]
	} else if strings.Contains(program, " ") {
		return false
	}
	return filepath.Base(program) == "belay" && !strings.ContainsAny(program, "'\"`$;&|<>()\n")
}

// filled replaces the variables in an argument of a command that runs without a shell.
func (r *reader) filled(arg string) string {
	return strings.NewReplacer(
		"${CLAUDE_PROJECT_DIR}", r.opts.Project, "$CLAUDE_PROJECT_DIR", r.opts.Project, "${CLAUDE_PLUGIN_ROOT}", r.opts.Root, "$CLAUDE_PLUGIN_ROOT", r.opts.Root,
		"${GEMINI_PROJECT_DIR}", r.opts.Project, "$GEMINI_PROJECT_DIR", r.opts.Project,
	).Replace(arg)
}

// mentions reports whether a command, or a file that it names, has a word in its text.
func mentions(argv, files []string, word string) bool {
	if slices.ContainsFunc(argv, func(arg string) bool { return strings.Contains(arg, word) }) {
		return true
	}
	return slices.ContainsFunc(files, func(name string) bool {
		info, err := os.Stat(name)
		if err != nil || info.Size() > 1<<20 {
			return true
		}
		text, err := os.ReadFile(name)
		return err != nil || strings.Contains(string(text), word)
	})
}

// deciding matches what a command has that denies: a key of its output, or the exit code. At a
// gate, it can also be another key.
var deciding = sync.OnceValue(func() map[bool]*regexp.Regexp {
	const everywhere = `\bexit[ \t]*\(?[ \t]*2\b|["']decision\\?["']`
	return map[bool]*regexp.Regexp{false: regexp.MustCompile(everywhere), true: regexp.MustCompile(`permissionDecision|` + everywhere)}
})

// decision returns what in a command, or in its scripts, looks as if the command decides, or
// "".
func decision(argv, files []string, gate bool) string {
	if word := deciding()[gate].FindString(strings.Join(argv, " ")); word != "" {
		return word
	}
	for _, name := range files {
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
			continue
		}
		text, err := os.ReadFile(name)
		if word := deciding()[gate].FindString(string(text)); err == nil && word != "" {
			return word
		}
	}
	return ""
}
