// Package namedfile finds the files that the command of another agent's hook names, so that
// trust can cover them.
package namedfile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/lazyregexp"
)

// words matches what may be the path of a file in a command.
var words = lazyregexp.New(`[^\s"'=;&|<>()` + "`" + `]+`)

// Find returns the files of the project, of the plugin and of the home directory that a
// command names. root is the directory of the plugin, or empty.
func Find(project, root string, argv []string) []string {
	var found []string
	home, _ := os.UserHomeDir() // without a home directory, ~ is left as it is
	fill := strings.NewReplacer(
		`"`, "", "${CLAUDE_PROJECT_DIR}", project, "$CLAUDE_PROJECT_DIR", project, "${CLAUDE_PLUGIN_ROOT}", root, "$CLAUDE_PLUGIN_ROOT", root,
		"${GEMINI_PROJECT_DIR}", project, "$GEMINI_PROJECT_DIR", project, "${CLAUDE_PROJECT_DIR:-.}", project, "$HOME", home, "${HOME}", home, "$(pwd)", project, "$PWD", project,
	)
	for _, arg := range argv {
		for _, word := range words.FindAllString(fill.Replace(arg), -1) {
			if rest, ok := strings.CutPrefix(word, "~/"); ok {
				word = filepath.Join(home, rest)
			}
			if !filepath.IsAbs(word) {
				word = filepath.Join(project, word)
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
