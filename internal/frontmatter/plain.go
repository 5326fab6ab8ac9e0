package frontmatter

import (
	"strings"
)

// readPlain reads simple frontmatter: top-level keys with one value each, unquoted or
// simply quoted, lists of such values, and mappings of one level. It reports false for
// anything else. The result must be the same as that of a complete YAML parser.
func readPlain(head string, line int) ([]Field, bool) {
	p := plain{rest: head, line: line - 1}
	p.next()
	var fields []Field
	for !p.end {
		if p.blank() {
			p.next()
			continue
		}
		field, ok := p.field(0)
		if !ok || known(fields, field.Key) {
			return nil, false
		}
		if field.Value.Kind == Null {
			if field.Value, ok = p.block(field.Value); !ok {
				return nil, false
			}
		}
		fields = append(fields, field)
	}
	return fields, true
}

// plain reads a text line by line.
type plain struct {
	rest string
	text string // the current line
	line int    // the number of the current line
	end  bool   // there are no more lines
}

func (p *plain) next() {
	if p.rest == "" {
		p.end, p.text = true, ""
		return
	}
	p.text, p.rest, _ = cutLine(p.rest)
	p.line++
}

// blank reports whether the line is empty, or a comment without indentation.
func (p *plain) blank() bool {
	return !p.end && (strings.TrimLeft(p.text, " ") == "" || p.text[0] == '#' && sound(p.text))
}

// field reads a line "key: value" with this indentation. It rejects a line with more
// indentation, because such a line continues the value above or is a mistake.
func (p *plain) field(indent int) (Field, bool) {
	text := p.text[indent:]
	n := 0
	for n < len(text) && (text[n]|0x20 >= 'a' && text[n]|0x20 <= 'z' || text[n] == '_' || n > 0 && (text[n] >= '0' && text[n] <= '9' || text[n] == '-')) {
		n++
	}
	if n == 0 || n == len(text) || text[n] != ':' || resolves(text[:n]) {
		return Field{}, false
	}
	field := Field{Key: text[:n], Line: p.line}
	rest := text[n+1:]
	if rest != "" && rest[0] != ' ' {
		return field, false
	}
	value, ok := scalar(strings.Trim(rest, " "), false)
	value.setLine(p.line)
	field.Value = value
	p.next()
	return field, ok
}

// block reads the lines below a key without a value. They are a list, a mapping of one
// level, or nothing.
func (p *plain) block(null Value) (Value, bool) {
	for !p.end && strings.TrimLeft(p.text, " ") == "" {
		p.next()
	}
	if p.end {
		return null, true
	}
	indent := len(p.text) - len(strings.TrimLeft(p.text, " "))
	switch text := p.text[indent:]; {
	case strings.HasPrefix(text, "- "):
		return p.list(indent)
	case indent > 0:
		return p.nested(indent)
	default:
		return null, text[0] != '#' && text[0] != '-' // after a comment anything could follow
	}
}

// list reads lines "- value".
func (p *plain) list(indent int) (Value, bool) {
	list := Value{Kind: List, Line: p.line}
	for !p.end && p.at(indent) && strings.HasPrefix(p.text[indent:], "- ") {
		item, ok := scalar(strings.Trim(p.text[indent+2:], " "), false)
		if !ok || item.Kind != String && item.Kind != Int {
			return list, false
		}
		item.setLine(p.line)
		list.List = append(list.List, item)
		p.next()
	}
	return list, true
}

// nested reads lines "key: value" with the same indentation.
func (p *plain) nested(indent int) (Value, bool) {
	m := Value{Kind: Map, Line: p.line}
	for !p.end && p.at(indent) {
		field, ok := p.field(indent)
		if !ok || field.Value.Kind == Null || known(m.Map, field.Key) {
			return m, false
		}
		m.Map = append(m.Map, field)
	}
	return m, true
}

// at reports whether the line has exactly this indentation.
func (p *plain) at(indent int) bool {
	return len(p.text) > indent && strings.TrimLeft(p.text[:indent+1], " ") == p.text[indent:indent+1] && p.text[indent] != ' '
}

func known(fields []Field, key string) bool {
	for i := range fields {
		if fields[i].Key == key {
			return true
		}
	}
	return false
}

func (v *Value) setLine(line int) {
	v.Line = line
	for i := range v.List {
		v.List[i].Line = line
	}
}

// scalar reads a value on one line. If inFlow is true, the value is in a list in brackets,
// where fewer characters are allowed.
func scalar(s string, inFlow bool) (Value, bool) {
	if s == "" {
		return Value{Kind: Null}, !inFlow
	}
	switch c := s[0]; {
	case c == '"' || c == '\'':
		inner, ok := quoted(s)
		return Value{Kind: String, Text: inner}, ok && sound(inner)
	case c == '[' && !inFlow:
		return flow(s)
	case c >= '0' && c <= '9':
		for i := range len(s) {
			if s[i] < '0' || s[i] > '9' || i > 0 && c == '0' || i > 8 {
				return Value{}, false
			}
		}
		return Value{Kind: Int, Text: s}, true
	case strings.IndexByte("-?:,[]{}#&*!|>%@`<=+.~", c) >= 0 || resolves(s) || !sound(s):
		return Value{}, false
	case inFlow && strings.ContainsAny(s, ",[]{}:#'\""):
		return Value{}, false
	case strings.Contains(s, ": ") || strings.Contains(s, " #") || s[len(s)-1] == ':':
		return Value{}, false
	}
	return Value{Kind: String, Text: s}, true
}

// quoted removes the quotes around a text. It reports false if the text inside contains the
// same quote or, in double quotes, a backslash.
func quoted(s string) (string, bool) {
	if len(s) < 2 || s[len(s)-1] != s[0] {
		return "", false
	}
	inner := s[1 : len(s)-1]
	return inner, strings.IndexByte(inner, s[0]) < 0 && (s[0] == '\'' || strings.IndexByte(inner, '\\') < 0)
}

// flow reads a list in brackets, such as [a, b].
func flow(s string) (Value, bool) {
	list := Value{Kind: List}
	if s[len(s)-1] != ']' {
		return list, false
	}
	inner := s[1 : len(s)-1]
	if strings.Trim(inner, " ") == "" {
		return list, false // leave this rare case to the library
	}
	for part := range strings.SplitSeq(inner, ",") {
		item, ok := scalar(strings.Trim(part, " "), true)
		if !ok {
			return list, false
		}
		list.List = append(list.List, item)
	}
	return list, true
}

// resolves reports whether any version of YAML reads this word as something other than
// text.
func resolves(s string) bool {
	if len(s) > 5 {
		return false
	}
	switch strings.ToLower(s) {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		return true
	}
	return false
}

// sound reports whether a text has no control characters, and no characters that some
// programs treat as the end of a line.
func sound(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f {
			return false
		}
		if s[i] >= 0x80 {
			return !strings.ContainsFunc(s[i:], func(r rune) bool {
				return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff
			})
		}
	}
	return true
}
