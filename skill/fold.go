package skill

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// folded is what an ASCII letter is taken for.
var folded = func() (table [utf8.RuneSelf]byte) {
	for i := range table {
		table[i] = byte(foldRune(rune(i)))
	}
	return table
}()

// foldRune returns the first of the runes that case does not tell apart, as RE2
// has it: k, K and the Kelvin sign are one, and so are s, S and the long s; the
// dotless i of Turkish is a letter of its own.
func foldRune(r rune) rune {
	first := r
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		first = min(first, other)
	}
	return first
}

// appendFolded appends a text without its case. Two texts are equal but for case
// if what is appended is equal. A byte that is no text becomes U+FFFD, as it is
// for a regular expression.
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

// indexFolded finds a word in a text, whatever the case of both, and returns where
// it is: text[start:end].
func indexFolded(text, word string) (start, end int) {
	word = fold(word)
	for i := range text {
		j, rest := i, word
		for rest != "" {
			if j == len(text) {
				return -1, -1 // what is left is too short, and shorter further on
			}
			r, size := utf8.DecodeRuneInString(text[j:])
			want := string(foldRune(r))
			if !strings.HasPrefix(rest, want) {
				break
			}
			rest, j = rest[len(want):], j+size
		}
		if rest == "" {
			return i, j
		}
	}
	return -1, -1
}
