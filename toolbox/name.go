package toolbox

import (
	"strconv"
	"strings"
	"unicode"
)

// inText returns a file name for use in texts. Names that could be misread are
// quoted: those with a line end, an escape sequence or another unprintable
// character, with a space at the beginning or end, or with a leading quote.
func inText(name string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }
	if strings.ContainsFunc(name, odd) || strings.HasPrefix(name, `"`) || strings.TrimSpace(name) != name {
		return strconv.Quote(name)
	}
	return name
}
