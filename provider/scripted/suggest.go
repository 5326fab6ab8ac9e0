package scripted

import (
	"fmt"
	"strings"
)

// suggestion says what somebody may have meant: the nearest of the known words,
// or if none is near, any of them.
func suggestion(word string, known []string) string {
	best, distance := "", len(word)/3+2
	for _, k := range known {
		if d := edits(word, k); d < distance {
			best, distance = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf(" (did you mean %q?)", best)
	}
	return fmt.Sprintf(": use one of %s", strings.Join(known, ", "))
}

// edits is how many letters have to be added, dropped or changed to make one
// word of another.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
