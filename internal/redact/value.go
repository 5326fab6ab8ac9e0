package redact

import (
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/lazyregexp"
)

// named matches a name and the separator before its value, as in TOKEN=x, "token": "x",
// --token x, and "--token", "x".
var named = lazyregexp.New(`([A-Za-z_][A-Za-z0-9_.-]*)(\\*["'` + "`" + `]?(?:\s*(?:=>|:=|[=:])\s*|\s*,\s*|\s+))`)

// namedValues replaces values whose names look like names of secrets.
func namedValues(text string) string {
	var b strings.Builder
	done := 0 // the text before this index is already written
	for at := 0; at < len(text); {
		found := named.FindStringSubmatchIndex(text[at:])
		if found == nil {
			break
		}
		from, nameEnd, valueAt := at+found[2], at+found[3], at+found[1]
		name, between := text[from:nameEnd], text[nameEnd:valueAt]
		at = valueAt
		flag := from > 0 && text[from-1] == '-'
		if !Name(name) || !strings.ContainsAny(between, "=:") && !flag {
			continue
		}
		from, to := value(text, valueAt)
		expands := from == valueAt || text[from-1] != '\'' // a shell does not expand variables in single quotes
		if from == to || keeps(name, text[from:to], flag, expands) {
			continue
		}
		b.WriteString(text[done:from])
		b.WriteString(Mark)
		done, at = to, to
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

// Value returns the value of a field without its secrets. If the field is called like a secret, the
// whole value is one.
func Value(name, text string) string {
	if text == "" || !Name(name) || keeps(name, text, false, false) {
		return Text(text)
	}
	return Mark
}

// value returns the start and end of the value at an index. The value is the text between
// quotes, which may be escaped, or a word as a shell reads it.
func value(text string, at int) (from, to int) {
	escapes := 0
	for at+escapes < len(text) && text[at+escapes] == '\\' {
		escapes++
	}
	if open := at + escapes; open < len(text) && strings.IndexByte("\"'`", text[open]) >= 0 {
		from = open + 1
		for to = from; to < len(text); to++ {
			if text[to] == text[open] && escapesBefore(text[from:to]) <= escapes {
				return from, to - escapesBefore(text[from:to])
			}
		}
		return from, to
	}
	for to = at; to < len(text); to++ {
		switch c := text[to]; {
		case strings.IndexByte(" \t\r\n\v\f\"'`;&|<>)}", c) >= 0:
			return at, to
		case c == ',' && (to+1 == len(text) || strings.IndexByte(" \t\r\n\"'", text[to+1]) >= 0):
			return at, to
		}
	}
	return at, to
}

// escapesBefore returns the number of backslashes at the end of a text.
func escapesBefore(text string) int { return len(text) - len(strings.TrimRight(text, `\`)) }

// reference matches a text that a shell replaces completely: a variable or a command.
// Such a text is not a secret, and a person who reads the text needs it.
var reference = lazyregexp.New(`^(?:\$[A-Za-z_][A-Za-z0-9_]*$|\$\{[A-Za-z_][A-Za-z0-9_]*$|\$\{[A-Za-z_][A-Za-z0-9_]*\}$|\$\()`)

// plain are values that are not secrets: they name a kind of secret, or mean that there is
// none.
var plain = []string{"true", "false", "null", "none", "bearer", "basic", "token", "digest"}

// keeps reports whether a value is not a secret, although its name looks like the name of
// a secret.
func keeps(name, value string, flag, expands bool) bool {
	switch {
	case value == Mark, slices.Contains(plain, strings.ToLower(value)):
		return true
	case expands && reference.MatchString(value):
		return true
	case flag && strings.HasPrefix(value, "-"): // the value is the next flag
		return true
	default:
		return strings.HasSuffix(strings.ToUpper(name), "TOKENS") && digits(value) // the value is a number of tokens
	}
}
