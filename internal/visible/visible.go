// Package visible makes text of a model, a tool or a file safe to show on a terminal.
package visible

import (
	"fmt"
	"strings"

	"github.com/belay-run/belay/internal/lazyregexp"
)

// colours matches the escape sequences with which programs set colours, titles and links.
// Clean removes them.
var colours = lazyregexp.New(`\x1b\[[0-9;:?]*[\x20-\x2f]*[\x40-\x7e]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)`)

// Clean makes text of a model or a tool safe to show. It removes colours, replaces tabs by
// spaces, and makes other control characters visible.
func Clean(text string) string {
	if plain(text) {
		return text
	}
	return All(colours.ReplaceAllString(text, ""))
}

// All makes control characters visible, and characters that change the direction of text.
// It replaces a tab by spaces, and \r\n by a newline. It removes nothing else, because people
// make decisions by this text.
func All(text string) string {
	if plain(text) {
		return text
	}
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n':
			b.WriteRune(r)
		case r == '\t':
			b.WriteString("    ")
		case r < ' ':
			b.WriteRune('\u2400' + r) // the Unicode symbol for the control character
		case r == 0x7f:
			b.WriteRune('\u2421')
		case r >= 0x80 && r < 0xa0, bidi(r):
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// bidi reports whether a character changes the direction of text.
func bidi(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x061c
}

// plain reports whether a text needs no cleaning.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\n' || c >= 0x7f {
			return false
		}
	}
	return true
}
