package skill

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// folded maps ASCII characters to their folded form.
var folded = func() (table [utf8.RuneSelf]byte) {
	for i := range table {
		table[i] = byte(foldRune(rune(i)))
	}
	return table
}()

// foldRune returns the same rune for all runes that differ only in case: the smallest of
// them. The rules are those of RE2. For example, k, K and the Kelvin sign are equal, and
// s, S and the long s are equal. The Turkish dotless i is different from i.
func foldRune(r rune) rune {
	first := r
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		first = min(first, other)
	}
	return first
}

// appendFolded appends the case-folded form of a text. Texts that differ only in case
// have equal folded forms. An invalid byte becomes U+FFFD, as in a regular expression.
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

// indexFolded finds a word in a text, ignoring case. It returns its position as
// text[start:end]. The arguments folded and word are case-folded. Folding does not change
// the number of runes, so counting runes gives the position in the original text.
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
