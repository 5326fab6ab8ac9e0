package toolbox

import (
	"strconv"
	"strings"
	"unicode"
)

// inText is a name of a file as texts have it. One that could pass for something
// else there is quoted: it has a line end, an escape sequence or another character
// that does not print, begins or ends with a space, or begins with a quote.
func inText(name string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }
	if strings.ContainsFunc(name, odd) || strings.HasPrefix(name, `"`) || strings.TrimSpace(name) != name {
		return strconv.Quote(name)
	}
	return name
}
