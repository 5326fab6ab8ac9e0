package assembly

import (
	"slices"
	"strings"

	"github.com/belay-run/belay/permit"
)

// later returns the files of the project that git and other programs run by themselves. Only git may change the plan of
// a rebase.
func (f *Floor) later(e *permit.Explanation) []string {
	paths := f.RunsLater()
	if !slices.ContainsFunc(e.Findings, continuesRebase) {
		paths = append(paths, f.RebasePlans()...)
	}
	return paths
}

// continuesRebase reports whether a command is one of git that continues or begins a rebase.
func continuesRebase(f permit.Finding) bool {
	words := strings.Fields(f.Subject)
	return f.Kind == permit.KindCommand && len(words) > 1 && words[0] == "git" &&
		slices.ContainsFunc(words[1:], func(w string) bool {
			return slices.Contains([]string{"rebase", "am", "cherry-pick", "revert", "pull", "commit", "reset", "checkout", "switch", "merge"}, w)
		})
}
