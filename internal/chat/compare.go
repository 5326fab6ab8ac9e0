package chat

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/label"
	"github.com/belay-run/belay/internal/visible"
)

// spelled returns the whole input of a call as readable lines: one line per field, and
// several lines for a text with line breaks.
func spelled(input json.RawMessage) []string {
	fields, ok := label.Fields(input)
	if !ok {
		return strings.Split(visible.All(string(input)), "\n")
	}
	var lines []string
	for _, f := range fields {
		value := strings.Split(visible.All(f.Value), "\n")
		if len(value) == 1 {
			lines = append(lines, visible.All(f.Key)+": "+value[0])
			continue
		}
		lines = append(lines, visible.All(f.Key)+":")
		for _, line := range value {
			lines = append(lines, "  "+line)
		}
	}
	if len(lines) == 0 {
		lines = []string{"{}"}
	}
	return lines
}

// comparedLine is a line of a diff: kept (' '), added ('+') or removed ('-').
type comparedLine struct {
	mark rune
	text string
}

// compareMost limits the work of compared: the product of the two line counts.
const compareMost = 250_000

// compared returns the difference of two lists of lines. If there are too many lines, it
// removes all old lines and adds all new lines.
func compared(before, after []string) []comparedLine {
	var out []comparedLine
	if len(before) == 0 || len(before)*len(after) > compareMost {
		for _, line := range before {
			out = append(out, comparedLine{'-', line})
		}
		for _, line := range after {
			out = append(out, comparedLine{'+', line})
		}
		return out
	}
	// common[i][j] is the length of the longest common subsequence of before[i:] and
	// after[j:].
	common := make([][]int, len(before)+1)
	for i := range common {
		common[i] = make([]int, len(after)+1)
	}
	for i, old := range slices.Backward(before) {
		for j, line := range slices.Backward(after) {
			if old == line {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(before) || j < len(after) {
		switch {
		case i < len(before) && j < len(after) && before[i] == after[j]:
			out = append(out, comparedLine{' ', before[i]})
			i++
			j++
		case j == len(after) || i < len(before) && common[i+1][j] >= common[i][j+1]:
			out = append(out, comparedLine{'-', before[i]})
			i++
		default:
			out = append(out, comparedLine{'+', after[j]})
			j++
		}
	}
	return out
}
