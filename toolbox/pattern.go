package toolbox

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// errPattern means that a path pattern is invalid.
var errPattern = errors.New("a bracket or a brace is not closed, or a range is reversed")

// compilePath makes a regular expression of a path pattern. * and ? match anything except
// a slash. ** between slashes matches any number of directories. [a-z] and [!a-z] match
// one character. A backslash escapes the next character. If braces is set, {a,b} matches
// a or b. Matching takes linear time for every pattern, so a malicious pattern cannot
// slow it down.
func compilePath(pattern string, braces bool) (*regexp.Regexp, error) {
	t := &translation{rest: pattern, braces: braces}
	t.out.WriteString(`(?s)\A(?:`)
	for t.rest != "" {
		if err := t.step(); err != nil {
			return nil, err
		}
	}
	if t.depth > 0 {
		return nil, errPattern
	}
	t.out.WriteString(`)\z`)
	re, err := regexp.Compile(t.out.String())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPattern, err)
	}
	return re, nil
}

// translation is the state while a pattern is translated.
type translation struct {
	rest   string
	braces bool
	out    strings.Builder
	depth  int  // how many braces are open
	inPart bool // the last character was not a slash or a brace
}

func (t *translation) step() error {
	begins := !t.inPart
	t.inPart = true
	c := t.rest[0]
	switch {
	case begins && strings.HasPrefix(t.rest, "**/"):
		t.take(3, `(?:[^/]+/)*`)
		t.inPart = false
	case begins && t.rest == "**" || begins && t.braces && t.depth > 0 && (strings.HasPrefix(t.rest, "**,") || strings.HasPrefix(t.rest, "**}")):
		t.take(2, `.+`)
	case c == '*':
		t.take(len(t.rest)-len(strings.TrimLeft(t.rest, "*")), `[^/]*`)
	case c == '?':
		t.take(1, `[^/]`)
	case c == '[':
		return t.class()
	case c == '\\' && len(t.rest) == 1:
		return errPattern
	case c == '\\':
		t.rest = t.rest[1:]
		t.literal()
	case c == '/':
		t.take(1, `/`)
		t.inPart = false
	case t.braces && c == '{':
		t.take(1, `(?:`)
		t.depth++
		t.inPart = !begins
	case t.depth > 0 && c == ',':
		t.take(1, `|`)
		t.inPart = false
	case t.depth > 0 && c == '}':
		t.take(1, `)`)
		t.depth--
	default:
		t.literal()
	}
	return nil
}

// take removes n bytes from the pattern and adds their translation to the expression.
func (t *translation) take(n int, by string) {
	t.rest = t.rest[n:]
	t.out.WriteString(by)
}

// literal translates one ordinary character.
func (t *translation) literal() {
	_, n := utf8.DecodeRuneInString(t.rest)
	t.take(n, regexp.QuoteMeta(t.rest[:n]))
}

// class translates a bracket expression.
func (t *translation) class() error {
	body := t.rest[1:]
	var out strings.Builder
	out.WriteByte('[')
	negated := body != "" && (body[0] == '!' || body[0] == '^')
	if negated {
		body = body[1:]
		out.WriteString(`^/`)
	}
	for first := true; ; first = false {
		if body == "" {
			return errPattern
		}
		name, _, named := strings.Cut(body[min(2, len(body)):], ":]")
		switch {
		case body[0] == ']' && !first:
			out.WriteByte(']')
			t.rest = body[1:]
			t.out.WriteString(out.String())
			return nil
		case strings.HasPrefix(body, "[:") && named:
			out.WriteString("[:" + name + ":]")
			body = body[len(name)+4:]
			continue
		case body[0] == '-': // - in a range, or at the beginning or end of the brackets
			out.WriteByte('-')
			body = body[1:]
			continue
		case body[0] == '\\' && len(body) > 1:
			body = body[1:]
		}
		_, n := utf8.DecodeRuneInString(body)
		if strings.ContainsAny(body[:n], `[]\^-`) {
			out.WriteByte('\\')
		}
		out.WriteString(body[:n])
		body = body[n:]
	}
}
