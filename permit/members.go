package permit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// member is a field of an input: its name, and its value as JSON.
type member struct {
	name  string
	value json.RawMessage
}

// text returns the value if it is a string.
func (m *member) text() (string, bool) { return unquote(m.value) }

// members parses the object of an input, one level deep. A name that occurs twice, even
// in another case, is an error, because two programs could use different values.
func members(input json.RawMessage) ([]member, error) {
	s := scanner{data: input}
	s.space()
	if s.at == len(input) {
		return nil, nil // no input: no fields
	}
	if !s.take('{') {
		if !json.Valid(input) {
			return nil, errors.New("the input is not valid JSON")
		}
		return nil, nil // no object: no fields
	}
	var all []member
	s.space()
	if s.take('}') {
		return nil, s.end()
	}
	for {
		s.space()
		name, ok := unquote(s.value())
		if !ok {
			return nil, errors.New("the input is not valid JSON")
		}
		s.space()
		if !s.take(':') {
			return nil, errors.New("the input is not valid JSON")
		}
		s.space()
		value := s.value()
		if value == nil {
			return nil, errors.New("the input is not valid JSON")
		}
		for i := range all {
			if strings.EqualFold(all[i].name, name) {
				return nil, fmt.Errorf("the input has the field %q twice", name)
			}
		}
		all = append(all, member{name, value})
		s.space()
		if s.take('}') {
			return all, s.end()
		}
		if !s.take(',') {
			return nil, errors.New("the input is not valid JSON")
		}
	}
}

// scanner scans JSON. It does not find every mistake in invalid JSON.
type scanner struct {
	data json.RawMessage
	at   int
}

func (s *scanner) space() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

func (s *scanner) take(c byte) bool {
	if s.at < len(s.data) && s.data[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) end() error {
	s.space()
	if s.at != len(s.data) {
		return errors.New("the input has text after its JSON object")
	}
	return nil
}

// value returns the next value, or nil if there is no valid value.
func (s *scanner) value() json.RawMessage {
	from, depth := s.at, 0
	for s.at < len(s.data) {
		switch c := s.data[s.at]; c {
		case '"':
			if !s.str() {
				return nil
			}
			if depth == 0 {
				return s.data[from:s.at]
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return s.scalar(from)
			}
			if depth--; depth == 0 {
				s.at++
				return s.data[from:s.at]
			}
		case ',', ' ', '\t', '\n', '\r', ':':
			if depth == 0 {
				return s.scalar(from)
			}
		}
		s.at++
	}
	return nil
}

// scalar returns a number, true, false or null.
func (s *scanner) scalar(from int) json.RawMessage {
	if from == s.at || !json.Valid(s.data[from:s.at]) {
		return nil
	}
	return s.data[from:s.at]
}

func (s *scanner) str() bool {
	for s.at++; s.at < len(s.data); s.at++ {
		switch s.data[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return true
		}
	}
	return false
}

func unquote(value json.RawMessage) (string, bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	inside := value[1 : len(value)-1]
	for i, c := range inside {
		if c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			if text, ok := unescaped(inside, i); ok {
				return text, true
			}
			var text string
			err := json.Unmarshal(value, &text)
			return text, err == nil
		}
	}
	return string(inside), true
}

// unescaped returns the value of a JSON string with the usual escapes. first is the
// position of the first escape. It returns false for other escapes and for non-ASCII
// characters, which package json decodes more slowly.
func unescaped(inside []byte, first int) (string, bool) {
	text := make([]byte, first, len(inside))
	copy(text, inside)
	for i := first; i < len(inside); i++ {
		c := inside[i]
		if c < ' ' || c >= utf8.RuneSelf {
			return "", false
		}
		if c != '\\' {
			text = append(text, c)
			continue
		}
		if i++; i >= len(inside) {
			return "", false
		}
		switch c = inside[i]; c {
		case '"', '\\', '/':
		case 'n':
			c = '\n'
		case 't':
			c = '\t'
		case 'r':
			c = '\r'
		case 'u': // json.Marshal escapes <, > and & like this
			code, err := strconv.ParseUint(string(inside[i+1:min(i+5, len(inside))]), 16, 16)
			if err != nil || i+5 > len(inside) || code >= utf8.RuneSelf {
				return "", false
			}
			c = byte(code)
			i += 4
		default:
			return "", false
		}
		text = append(text, c)
	}
	return string(text), true
}
