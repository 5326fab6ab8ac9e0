package toolbox

import (
	"strconv"
	"strings"
	"unicode"
)

// inText returns a file name for use in a text. It quotes a name that could be misread:
// one with an unprintable character such as a line break, with a space at the beginning
// or the end, or with a quote at the beginning.
func inText(name string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }
	if strings.ContainsFunc(name, odd) || strings.HasPrefix(name, `"`) || strings.TrimSpace(name) != name {
		return strconv.Quote(name)
	}
	return name
}
