// Package scan finds the names that users type after a slash: directives and skills.
package scan

import (
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Token is a name after a slash. text[Start] is the slash, and text[Start:End] is the slash
// with the name.
type Token struct {
	Name       string
	Start, End int
}

// Tokens returns the tokens of a text in order. A token is a slash and a name. The name
// begins with an ASCII letter, and letters, digits, _ and - may follow, and a colon between two
// of them, as in server:prompt. Before and after a
// token is a space, or the start or end of the text. A space is a character for which
// unicode.IsSpace is true. If there are no tokens, Tokens allocates nothing.
func Tokens(text string) []Token {
	var tokens []Token
	for at := 0; ; {
		slash := strings.IndexByte(text[at:], '/')
		if slash < 0 {
			return tokens
		}
		// In a path or a URL the next slash is near. So check a few bytes first, before the
		// slower search in long texts continues.
		for near := slash; near >= 0; near = nearSlash(text, at) {
			at += near + 1
			if before := at - 2; before >= 0 && text[before]-'!' < utf8.RuneSelf-'!' {
				continue // most slashes are inside a word
			}
			if token, ok := tokenAt(text, at); ok {
				tokens = append(tokens, token)
				at = token.End
			}
		}
	}
}

// nearSlash returns the distance to the next slash if it is within 16 bytes, or else -1.
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

// slashes returns a value in which the lowest bit that is set belongs to the first slash in
// eight bytes, or 0 if there is no slash.
func slashes(s string) uint64 {
	const ones, slash = 0x0101010101010101, 0x2f2f2f2f2f2f2f2f
	word := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	zero := word ^ slash // bytes that are slashes are zero now
	return (zero - ones) &^ zero & (ones << 7)
}

// tokenAt returns the token whose slash is at at-1, if there is one.
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

// Valid reports whether name can be the name of a token.
func Valid(name string) bool { return name != "" && NameLength(name) == len(name) }

// NameLength returns the length of the name at the beginning of a text, or 0.
func NameLength(text string) int {
	if text == "" || !letter(text[0]) {
		return 0
	}
	end := 1
	for end < len(text) && (part(text[end]) || text[end] == ':' && end+1 < len(text) && part(text[end+1])) {
		end++
	}
	return end
}

// Replace replaces tokens of a text. The tokens must be in order.
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

// Behind returns the text behind each name of a text, up to the end of the text. The names must
// be in the order of their tokens; other tokens are skipped.
func Behind(text string, names []string) []string {
	behind := make([]string, len(names))
	text = strings.TrimRightFunc(text, unicode.IsSpace)
	at := 0
	for _, token := range Tokens(text) {
		if at < len(names) && token.Name == names[at] {
			behind[at] = strings.TrimLeftFunc(text[token.End:], unicode.IsSpace)
			at++
		}
	}
	return behind
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

// Leading returns the name of the token at the beginning of a text, or "".
func Leading(text string) string {
	if tokens := Tokens(text); len(tokens) > 0 && tokens[0].Start == 0 {
		return tokens[0].Name
	}
	return ""
}
