// Package near finds known names that are similar to an unknown one, so that errors can
// suggest what was probably meant.
package near

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// longest limits the length of names that are compared. A longer name is not a typing
// error.
const longest = 128

// Names returns up to n known names that are similar to name, the most similar first. It
// ignores case. Two names are also similar if one contains the other.
func Names(name string, known []string, n int) []string {
	type candidate struct {
		name  string
		edits int
	}
	if name == "" || len(name) > longest {
		return nil
	}
	lower, bound := strings.ToLower(name), len(name)/3+1
	var like []candidate
	for _, k := range known {
		other := strings.ToLower(k)
		part := other != "" && (strings.Contains(other, lower) || strings.Contains(lower, other))
		apart := max(len(lower)-len(other), len(other)-len(lower))
		if !part && apart > bound {
			continue // the lengths differ too much
		}
		if d := edits(lower, other); part || d <= bound && d < max(len(lower), len(other)) {
			like = append(like, candidate{k, d})
		}
	}
	far := func(other string) int { // prefer names of the same length, because swapped letters are more likely than an added letter
		return max(len(name)-len(other), len(other)-len(name))
	}
	slices.SortFunc(like, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.edits, b.edits), cmp.Compare(far(a.name), far(b.name)), strings.Compare(a.name, b.name))
	})
	names := make([]string, 0, n)
	for _, c := range like[:min(n, len(like))] {
		names = append(names, c.name)
	}
	return names
}

// Hint returns ` (did you mean "name"?)` with the most similar known name, or "".
func Hint(name string, known []string) string {
	if names := Names(name, known, 1); len(names) > 0 {
		return fmt.Sprintf(" (did you mean %q?)", names[0])
	}
	return ""
}

// Slash returns a hint for an unknown /name if a known name is at most two edits away, or
// else "".
func Slash(name string, known []string) string {
	if name == "" || slices.Contains(known, name) {
		return ""
	}
	if meant := Within(name, known, 2); meant != "" {
		return fmt.Sprintf("there is no /%s (did you mean /%s?): the message goes to the model unchanged", name, meant)
	}
	return ""
}

// Within returns the known name that is the fewest edits away from name, or "". There may
// be up to most edits, and at most one for every two letters. It ignores case.
func Within(name string, known []string, most int) string {
	found, fewest := "", most+1
	lower := strings.ToLower(name)
	for _, k := range known {
		if max(len(k)-len(name), len(name)-len(k)) > most {
			continue
		}
		if d := edits(lower, strings.ToLower(k)); d < fewest && d <= min(len(name), len(k))/2 {
			found, fewest = k, d
		}
	}
	return found
}

// edits returns the edit distance of two words. An edit adds, removes or changes a letter,
// or swaps two neighbours.
func edits(a, b string) int {
	older, old, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		older, old, row = old, row, older
		row[0] = i + 1
		for j := range len(b) {
			row[j+1] = 1 + min(old[j], old[j+1], row[j])
			switch {
			case a[i] == b[j]:
				row[j+1] = min(row[j+1], old[j])
			case i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j]:
				row[j+1] = min(row[j+1], older[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
