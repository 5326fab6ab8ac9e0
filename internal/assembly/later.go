package assembly

import (
	"slices"
	"strings"

	"github.com/belay-run/belay/permit"
)

// later returns the files of the project that git and other programs run later by
// themselves. It includes the plan of a rebase, unless the command is a git command that
// may change the plan.
func (f *Floor) later(e *permit.Explanation) []string {
	paths := f.RunsLater()
	if !slices.ContainsFunc(e.Findings, continuesRebase) {
		paths = append(paths, f.RebasePlans()...)
	}
	return paths
}

// continuesRebase reports whether a finding is a git command that may change a plan of
// [permit.Floor.RebasePlans]: it may begin, continue or end a rebase, an am, a cherry-pick or
// a revert.
func continuesRebase(f permit.Finding) bool {
	words := strings.Fields(f.Subject)
	return f.Kind == permit.KindCommand && len(words) > 1 && words[0] == "git" &&
		slices.ContainsFunc(words[1:], func(w string) bool {
			return slices.Contains([]string{"rebase", "am", "cherry-pick", "revert", "pull", "commit", "reset", "checkout", "switch", "merge"}, w)
		})
}
