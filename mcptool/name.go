package mcptool

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

const (
	// separator stands between the name of the server and the name of the tool.
	separator = "__"
	// escape begins an escaped character in hexadecimal; a hyphen ends it.
	escape = "-0x"
	// shortened comes before the hash in a name that was cut.
	shortened = "-0z"
	// mostName is the maximum length of a tool's name.
	mostName = 128
)

// ToolName returns the name that agents use for a tool of a server: server__tool. It
// escapes characters other than letters, digits, - and _. For example, a dot becomes
// -0x2e-. It also escapes characters that would make two names equal. It cuts a name of
// more than 128 characters and adds a part of the name's hash.
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

// mostWhole is how many characters of a cut name come before the hash.
const mostWhole = mostName - len(shortened) - 12

// front returns the prefix of all tools of a server.
func front(server string) string {
	var b strings.Builder
	putServer(&b, server)
	return b.String()[:min(b.Len(), mostWhole)]
}

// putServer writes the part of a tool's name that comes from the server.
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
		plain = false // otherwise this text would look like an escape
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

// SplitName returns the server and the tool that [ToolName] was called with. ok is false
// for a name that ToolName has cut or did not make.
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
