package toolbox

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/lazyregexp"
)

const (
	maxCompared   = 50_000 // lines of a file that are compared
	maxComparedAt = 300    // bytes of a line that are compared
	maxQuoted     = 12     // lines of similar text that are quoted
)

var numbered = lazyregexp.New(`^ *\d+\t`)

// nearest describes the part of a text that is most similar to old, which was not found.
func nearest(text, old string) string {
	want := strings.Split(strings.TrimSuffix(old, "\n"), "\n")
	if numbered.MatchString(want[0]) {
		return " old_string begins with a line number, as in the output of read: remove the line numbers and the tabs after them."
	}
	key, at := "", 0 // compare the longest line, because it is the most specific
	for i, line := range want {
		if line = strings.TrimSpace(line); len(line) > len(key) {
			key, at = line, i
		}
	}
	if key == "" {
		return " old_string contains only white space."
	}
	lines := strings.SplitN(text, "\n", maxCompared+1)
	lines = lines[:min(len(lines), maxCompared)]
	var found []candidate
	for i, line := range lines {
		if score := similarity(strings.TrimSpace(line), key); score >= 0.5 {
			found = append(found, candidate{max(i-at, 0), i, score})
		}
	}
	if len(found) == 0 {
		return " Nothing in the file is similar: read the file again."
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	if best := found[0]; best.sameBut(lines, want) {
		end := min(best.start+len(want), best.start+maxQuoted)
		return fmt.Sprintf(" Line %d has the same text with different white space:\n%s", best.start+1, quoted(lines, best.start, end))
	}
	found = found[:min(len(found), 3)]
	slices.SortFunc(found, func(a, b candidate) int { return cmp.Compare(a.line, b.line) })
	var b strings.Builder
	b.WriteString(" The most similar text in the file:\n")
	for _, c := range found {
		b.WriteString(quoted(lines, c.line, c.line+1))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// candidate is a part of the text that may be meant. start is its first line. line is the
// line that is similar to the longest line of the missing text.
type candidate struct {
	start, line int
	score       float64
}

// sameBut reports whether a candidate differs from the missing text only in white space.
func (c candidate) sameBut(lines, want []string) bool {
	if c.start+len(want) > len(lines) {
		return false
	}
	for i, w := range want {
		if strings.Join(strings.Fields(lines[c.start+i]), " ") != strings.Join(strings.Fields(w), " ") {
			return false
		}
	}
	return true
}

// quoted returns lines in quotes, so that their white space can be seen.
func quoted(lines []string, from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		line := lines[i]
		if len(line) > maxComparedAt {
			line = string(cutEnd([]byte(line), maxComparedAt)) + "..."
		}
		fmt.Fprintf(&b, "%6d: %q\n", i+1, line)
	}
	return b.String()
}

// similarity returns how similar two texts are, from 0 to 1. It is the share of byte
// pairs that both texts contain.
func similarity(a, b string) float64 {
	a, b = a[:min(len(a), maxComparedAt)], b[:min(len(b), maxComparedAt)]
	switch {
	case a == b:
		return 1
	case len(a) < 2 || len(b) < 2 || len(a) > 3*len(b) || len(b) > 3*len(a):
		return 0
	}
	pairs := make(map[[2]byte]int, len(a))
	for i := 1; i < len(a); i++ {
		pairs[[2]byte{a[i-1], a[i]}]++
	}
	both := 0
	for i := 1; i < len(b); i++ {
		if p := [2]byte{b[i-1], b[i]}; pairs[p] > 0 {
			pairs[p]--
			both++
		}
	}
	return 2 * float64(both) / float64(len(a)+len(b)-2)
}
