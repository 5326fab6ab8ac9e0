// Package visible makes text that came from elsewhere, from a model, a tool or a file,
// fit for a terminal. What people decide by is shown with nothing left out.
package visible

import (
	"fmt"
	"regexp"
	"strings"
)

// colours are the sequences by which programs colour what they print, and the
// titles and links they set. They are left out; everything else that a terminal
// would heed is made visible.
var colours = regexp.MustCompile(`\x1b\[[0-9;:?]*[\x20-\x2f]*[\x40-\x7e]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)`)

// Clean makes text of a model or a tool fit to be shown: colours go, tabs become
// spaces, and what is left of control characters is made visible.
func Clean(text string) string {
	if plain(text) {
		return text
	}
	return All(colours.ReplaceAllString(text, ""))
}

// All makes every character of a text visible that a terminal would heed, or
// that would make it show something else than there is. It leaves nothing out: a
// person decides by what it shows.
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
			b.WriteRune('\u2400' + r) // the picture of the control character
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

// bidi reports whether a character makes text run in another direction than it
// is written.
func bidi(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x061c
}

// plain reports whether there is nothing in a text to clean.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\n' || c >= 0x7f {
			return false
		}
	}
	return true
}
