// Package scan finds the names that users type with a slash in front: directives
// and skills.
package scan

import (
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Token is a name with a slash in front, and its position: text[Start] is the
// slash, text[Start:End] the token.
type Token struct {
	Name       string
	Start, End int
}

// Tokens returns the tokens of a text in order. A token begins at the start of the
// text or after a space, with a slash and an ASCII letter; letters, digits, _ and
// - may follow, and then a space or the end of the text. A space is a character
// for which unicode.IsSpace is true. A text without tokens allocates nothing.
func Tokens(text string) []Token {
	var tokens []Token
	for at := 0; ; {
		slash := strings.IndexByte(text[at:], '/')
		if slash < 0 {
			return tokens
		}
		// After a slash another one is often near, in a path or an address: a few
		// bytes are checked before the search for long texts continues.
		for near := slash; near >= 0; near = nearSlash(text, at) {
			at += near + 1
			if before := at - 2; before >= 0 && text[before]-'!' < utf8.RuneSelf-'!' {
				continue // most slashes are part of a word
			}
			if token, ok := tokenAt(text, at); ok {
				tokens = append(tokens, token)
				at = token.End
			}
		}
	}
}

// nearSlash returns the distance to the next slash, if it is within 16 bytes, or -1.
func nearSlash(text string, at int) int {
	if len(text)-at < 16 {
		return -1
	}
	if found := slashes(text[at : at+8]); found != 0 {
		return bits.TrailingZeros64(found) / 8
	}
	if found := slashes(text[at+8 : at+16]); found != 0 {
		return 8 + bits.TrailingZeros64(found)/8
	}
	return -1
}

// slashes returns a value with a bit set in the first of eight bytes that is a
// slash, and 0 if there is none.
func slashes(s string) uint64 {
	const ones, slash = 0x0101010101010101, 0x2f2f2f2f2f2f2f2f
	word := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	zero := word ^ slash // the slashes are zero bytes now
	return (zero - ones) &^ zero & (ones << 7)
}

// tokenAt returns the token whose slash is before a position, if there is
// one.
func tokenAt(text string, at int) (Token, bool) {
	if at > 1 && !spaceBefore(text[:at-1]) {
		return Token{}, false
	}
	end := at + NameLength(text[at:])
	if end == at || end < len(text) && !spaceAfter(text[end:]) {
		return Token{}, false
	}
	return Token{text[at:end], at - 1, end}, true
}

// Valid reports whether a token can spell the name.
func Valid(name string) bool { return name != "" && NameLength(name) == len(name) }

// NameLength returns the length of the name that a text begins with: 0 if there is none.
func NameLength(text string) int {
	if text == "" || !letter(text[0]) {
		return 0
	}
	end := 1
	for end < len(text) && part(text[end]) {
		end++
	}
	return end
}

// Replace replaces tokens of a text, given in order.
func Replace(text string, tokens []Token, with func(Token) string) string {
	if len(tokens) == 0 {
		return text
	}
	var b strings.Builder
	at := 0
	for _, t := range tokens {
		b.WriteString(text[at:t.Start])
		b.WriteString(with(t))
		at = t.End
	}
	b.WriteString(text[at:])
	return b.String()
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func part(c byte) bool { return letter(c) || c >= '0' && c <= '9' || c == '_' || c == '-' }

// spaceBefore reports whether a text that is not empty ends in a space.
func spaceBefore(text string) bool {
	if c := text[len(text)-1]; c < utf8.RuneSelf {
		return c == ' ' || c >= '\t' && c <= '\r'
	}
	r, _ := utf8.DecodeLastRuneInString(text)
	return unicode.IsSpace(r)
}

// spaceAfter reports whether a text that is not empty begins with a space.
func spaceAfter(text string) bool {
	if c := text[0]; c < utf8.RuneSelf {
		return c == ' ' || c >= '\t' && c <= '\r'
	}
	r, _ := utf8.DecodeRuneInString(text)
	return unicode.IsSpace(r)
}

// Leading returns the name at the very beginning of a text, or "".
func Leading(text string) string {
	if tokens := Tokens(text); len(tokens) > 0 && tokens[0].Start == 0 {
		return tokens[0].Name
	}
	return ""
}
