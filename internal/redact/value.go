package redact

import (
	"regexp"
	"slices"
	"strings"
)

// named finds a name and what separates it from its value: TOKEN=x, "token": "x",
// --token x, "--token", "x".
var named = regexp.MustCompile(`([A-Za-z_][A-Za-z0-9_.-]*)(\\*["'` + "`" + `]?(?:\s*(?:=>|:=|[=:])\s*|\s*,\s*|\s+))`)

// namedValues removes the values of names that look like secrets.
func namedValues(text string) string {
	var b strings.Builder
	done := 0 // the text up to here is written
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
		expands := from == valueAt || text[from-1] != '\'' // a shell does not expand single quotes
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

// value returns the position of the value that begins at an index: the text between
// quotes, possibly escaped, or a word as a shell reads it.
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

// escapesBefore counts the backslashes at the end of a text.
func escapesBefore(text string) int { return len(text) - len(strings.TrimRight(text, `\`)) }

// reference matches what a shell replaces as a whole: the name of a variable or a
// command is not a secret, and the reader needs it.
var reference = regexp.MustCompile(`^(?:\$[A-Za-z_][A-Za-z0-9_]*$|\$\{[A-Za-z_][A-Za-z0-9_]*$|\$\{[A-Za-z_][A-Za-z0-9_]*\}$|\$\()`)

// plain are values that name the kind of a secret, or that there is none.
var plain = []string{"true", "false", "null", "none", "bearer", "basic", "token", "digest"}

// keeps reports whether a value is not a secret in spite of its name.
func keeps(name, value string, flag, expands bool) bool {
	switch {
	case value == Mark, slices.Contains(plain, strings.ToLower(value)):
		return true
	case expands && reference.MatchString(value):
		return true
	case flag && strings.HasPrefix(value, "-"): // the next flag
		return true
	default:
		return strings.HasSuffix(strings.ToUpper(name), "TOKENS") && digits(value) // a number of tokens
	}
}
