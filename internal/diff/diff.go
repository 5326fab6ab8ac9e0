// Package diff makes unified diffs of texts.
package diff

import (
	"cmp"

	"github.com/aymanbagabas/go-udiff"
)

// context is how many unchanged lines are shown around a change.
const context = 3

// Unified returns the unified diff of two texts, and how many lines were added and removed.
// An empty name means a file that does not exist.
func Unified(from, to, before, after string) (diff string, added, removed int) {
	if before == after {
		return "", 0, 0
	}
	from, to = cmp.Or(from, "/dev/null"), cmp.Or(to, "/dev/null")
	u, err := udiff.ToUnifiedDiff(from, to, before, udiff.Lines(before, after), context)
	if err != nil { // the library made an invalid diff: show all lines as changed
		u, _ = udiff.ToUnifiedDiff(from, to, before, []udiff.Edit{{End: len(before), New: after}}, context)
	}
	for _, hunk := range u.Hunks {
		for _, line := range hunk.Lines {
			switch line.Kind {
			case udiff.Insert:
				added++
			case udiff.Delete:
				removed++
			case udiff.Equal:
			}
		}
	}
	return u.String(), added, removed
}
