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

// filled replaces the variables in an argument of a command that runs without a shell.
func (r *reader) filled(arg string) string {
	return strings.NewReplacer(
		"${CLAUDE_PROJECT_DIR}", r.opts.Project, "$CLAUDE_PROJECT_DIR", r.opts.Project, "${CLAUDE_PLUGIN_ROOT}", r.opts.Root, "$CLAUDE_PLUGIN_ROOT", r.opts.Root,
		"${GEMINI_PROJECT_DIR}", r.opts.Project, "$GEMINI_PROJECT_DIR", r.opts.Project,
	).Replace(arg)
}

// words matches what may be the path of a file in a command.
var words = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[^\s"'=;&|<>()` + "`" + `]+`)
})

// namedFiles returns the files of the project, of the plugin and of the home directory that
// a command names. Trust covers them.
func namedFiles(o *Options, argv []string) []string {
	var found []string
	home, _ := os.UserHomeDir() // without a home directory, ~ is left as it is
	fill := strings.NewReplacer(
		`"`, "", "${CLAUDE_PROJECT_DIR}", o.Project, "$CLAUDE_PROJECT_DIR", o.Project, "${CLAUDE_PLUGIN_ROOT}", o.Root, "$CLAUDE_PLUGIN_ROOT", o.Root,
		"${GEMINI_PROJECT_DIR}", o.Project, "$GEMINI_PROJECT_DIR", o.Project, "${CLAUDE_PROJECT_DIR:-.}", o.Project, "$HOME", home, "${HOME}", home, "$(pwd)", o.Project, "$PWD", o.Project,
	)
	for _, arg := range argv {
		for _, word := range words().FindAllString(fill.Replace(arg), -1) {
			if rest, ok := strings.CutPrefix(word, "~/"); ok {
				word = filepath.Join(home, rest)
			}
			if !filepath.IsAbs(word) {
				word = filepath.Join(o.Project, word)
			}
			if info, err := os.Stat(word); err != nil || !info.Mode().IsRegular() || systemFile(word) {
				continue
			}
			if word = filepath.Clean(word); !slices.Contains(found, word) {
				found = append(found, word)
			}
		}
	}
	return found
}

// systemFile reports whether a file belongs to the system, such as /usr/bin/jq.
func systemFile(name string) bool {
	for _, dir := range []string{"/usr/", "/bin/", "/sbin/", "/opt/", "/etc/", "/dev/", "/proc/", "/nix/", "/System/", "/Library/"} {
		if strings.HasPrefix(name, dir) {
			return true
		}
	}
	return false
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
