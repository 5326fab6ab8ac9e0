package skill

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// folded maps ASCII letters to their folded form.
var folded = func() (table [utf8.RuneSelf]byte) {
	for i := range table {
		table[i] = byte(foldRune(rune(i)))
	}
	return table
}()

// foldRune returns the first of the runes that are equal under case folding, as
// in RE2: k, K and the Kelvin sign are one, and so are s, S and the long s; the
// dotless i of Turkish is a letter of its own.
func foldRune(r rune) rune {
	first := r
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		first = min(first, other)
	}
	return first
}

// appendFolded appends a text without its case. Two texts differ only in case if
// their folded forms are equal. An invalid byte becomes U+FFFD, as in a regular
// expression.
func appendFolded(to []byte, text string) []byte {
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			to = append(to, folded[c])
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		to = utf8.AppendRune(to, foldRune(r))
		i += size
	}
	return to
}

func fold(text string) string { return string(appendFolded(nil, text)) }

// indexFolded finds a word in a text, ignoring case, and returns its position:
// text[start:end]. It also gets the folded forms of both. Folding keeps the number of
// runes, so a position in one form is found in the other by counting runes.
func indexFolded(text string, folded []byte, word string) (start, end int) {
	before, _, found := bytes.Cut(folded, []byte(word))
	if !found {
		return -1, -1
	}
	start = runes(text, utf8.RuneCount(before))
	return start, start + runes(text[start:], utf8.RuneCountInString(word))
}

// runes returns the length of the first n runes of a text.
func runes(text string, n int) int {
	length := 0
	for ; n > 0; n-- {
		_, size := utf8.DecodeRuneInString(text[length:])
		length += size
	}
	return length
}
