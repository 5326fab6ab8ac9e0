package hooktest

import (
	"slices"
	"strings"
)

// diffContext is how many equal lines a diff shows before and after a difference.
const diffContext = 2

// lineDiff shows how two texts differ, line by line. A line of the first text begins with a
// minus sign, a line of the second with a plus sign. Long equal parts are left out.
func lineDiff(a, b string) string {
	var marked []string
	from, to := splitLines(a), splitLines(b)
	i, j := 0, 0
	for _, pair := range commonLines(from, to) {
		marked = appendMarked(marked, "- ", from[i:pair[0]])
		marked = appendMarked(marked, "+ ", to[j:pair[1]])
		marked = append(marked, "  "+from[pair[0]])
		i, j = pair[0]+1, pair[1]+1
	}
	marked = appendMarked(marked, "- ", from[i:])
	marked = appendMarked(marked, "+ ", to[j:])
	return shorten(marked)
}

func splitLines(text string) []string {
	return slices.Collect(strings.Lines(text))
}

func appendMarked(marked []string, mark string, lines []string) []string {
	for _, line := range lines {
		marked = append(marked, mark+line)
	}
	return marked
}

// commonLines finds a longest common subsequence and returns it as pairs of indexes. Time
// and memory grow with the product of the lengths, which is fine for golden files.
func commonLines(a, b []string) [][2]int {
	length := make([][]int, len(a)+1)
	for i := range length {
		length[i] = make([]int, len(b)+1)
	}
	for i, line := range slices.Backward(a) {
		for j, other := range slices.Backward(b) {
			if line == other {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	var pairs [][2]int
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			pairs = append(pairs, [2]int{i, j})
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
	return pairs
}

// shorten keeps the lines that differ, with diffContext lines before and after them.
func shorten(marked []string) string {
	keep := make([]bool, len(marked))
	for i, line := range marked {
		if line[0] == ' ' {
			continue
		}
		for k := max(i-diffContext, 0); k <= min(i+diffContext, len(marked)-1); k++ {
			keep[k] = true
		}
	}
	var b strings.Builder
	cut := false
	for i, line := range marked {
		switch {
		case keep[i]:
			b.WriteString(strings.TrimSuffix(line, "\n") + "\n")
			cut = false
		case !cut:
			b.WriteString("  ...\n")
			cut = true
		}
	}
	return b.String()
}
