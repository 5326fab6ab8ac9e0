package mcptool

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

const (
	// separator is between the name of a server and that of its tool.
	separator = "__"
	// escape begins a character that names may not have, in hexadecimal, and a hyphen
	// ends it.
	escape = "-0x"
	// shortened begins the end of a name that was too long.
	shortened = "-0z"
	// mostName is how many characters a tool's name may have.
	mostName = 128
)

// ToolName is the name that a tool of a server has for an agent: server__tool.
// Characters other than letters, digits, - and _ are written as -0x2e-, which is a dot,
// and so is what would make two names one. A name of more than 128 characters is cut,
// and ends in a part of its hash.
func ToolName(server, tool string) string {
	var b strings.Builder
	putServer(&b, server)
	runes := []rune(tool)
	for i := range runes {
		putRune(&b, runes, i)
	}
	name := b.String()
	if len(name) > mostName {
		sum := sha256.Sum256([]byte(name))
		name = name[:mostWhole] + shortened + hex.EncodeToString(sum[:6])
	}
	return name
}

// mostWhole is how many characters are kept of a name that is cut.
const mostWhole = mostName - len(shortened) - 12

// front is what the names of all tools of a server begin with.
func front(server string) string {
	var b strings.Builder
	putServer(&b, server)
	return b.String()[:min(b.Len(), mostWhole)]
}

// putServer writes what is in front of a tool's name.
func putServer(b *strings.Builder, server string) {
	runes := []rune(server)
	for i, r := range runes {
		last := i == len(runes)-1
		if r == '_' && (last || runes[i+1] == '_') {
			escapeRune(b, r)
			continue
		}
		putRune(b, runes, i)
	}
	b.WriteString(separator)
}

func putRune(b *strings.Builder, runes []rune, i int) {
	r := runes[i]
	plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
	if r == '-' && i+2 < len(runes) && runes[i+1] == '0' && (runes[i+2] == 'x' || runes[i+2] == 'z') {
		plain = false // it would be taken for an escape
	}
	if plain {
		b.WriteRune(r)
	} else {
		escapeRune(b, r)
	}
}

func escapeRune(b *strings.Builder, r rune) {
	b.WriteString(escape)
	b.WriteString(strconv.FormatInt(int64(r), 16))
	b.WriteByte('-')
}

// SplitName is what [ToolName] was made of. It does not know names that were cut, and
// those that are none of its own.
func SplitName(name string) (server, tool string, ok bool) {
	front, back, found := strings.Cut(name, separator)
	if !found {
		return "", "", false
	}
	if server, ok = unescape(front); !ok {
		return "", "", false
	}
	tool, ok = unescape(back)
	return server, tool, ok && ToolName(server, tool) == name
}

func unescape(text string) (string, bool) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, escape)
		b.WriteString(before)
		if !found {
			return b.String(), true
		}
		digits, after, closed := strings.Cut(rest, "-")
		code, err := strconv.ParseInt(digits, 16, 32)
		if !closed || err != nil {
			return "", false
		}
		b.WriteRune(rune(code))
		text = after
	}
}
