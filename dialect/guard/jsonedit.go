package guard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// This file edits JSON as text, so that everything else in a file keeps its bytes.

// member is a member of an object or an element of a list: the positions of its text.
type member struct {
	key        string // "" in a list
	begin      int    // of the key, or of the element
	start, end int    // of the value
}

// container is an object or a list: the positions of its brackets, and its members.
type container struct {
	open, close int
	members     []member
}

// newline begins a line inside the given number of objects, in files that Belay writes.
func newline(depth int) string { return "\n" + strings.Repeat("  ", depth+1) }

var errNoComments = errors.New("it is not plain JSON: remove comments and trailing commas, or add the hooks by hand")

// readObject reads the object at a position.
func readObject(text []byte, at int) (*container, error) { return read(text, at, '{') }

// readArray reads the list at a position.
func readArray(text []byte, at int) (*container, error) { return read(text, at, '[') }

func read(text []byte, at int, bracket json.Delim) (*container, error) {
	if at == 0 && !json.Valid(text) {
		return nil, errNoComments
	}
	d := json.NewDecoder(bytes.NewReader(text[at:]))
	first, err := d.Token()
	if err != nil || first != bracket {
		return nil, fmt.Errorf("want %s at byte %d", bracket, at)
	}
	c := &container{open: at + int(d.InputOffset()) - 1}
	for d.More() {
		var m member
		if bracket == '{' {
			key, err := d.Token()
			if err != nil {
				return nil, errNoComments
			}
			m.key, _ = key.(string)
			m.begin = at + int(d.InputOffset()) - keyLength(text[:at+int(d.InputOffset())])
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, errNoComments
		}
		m.end = at + int(d.InputOffset())
		m.start = m.end - len(value)
		if bracket == '[' {
			m.begin = m.start
		}
		c.members = append(c.members, m)
	}
	if _, err := d.Token(); err != nil {
		return nil, errNoComments
	}
	c.close = at + int(d.InputOffset()) - 1
	return c, nil
}

// keyLength returns the length of the string literal at the end of a text.
func keyLength(text []byte) int {
	for i := len(text) - 2; i >= 0; i-- {
		if text[i] != '"' {
			continue
		}
		escapes := 0
		for j := i - 1; j >= 0 && text[j] == '\\'; j-- {
			escapes++
		}
		if escapes%2 == 0 {
			return len(text) - i
		}
	}
	return len(text)
}

// find returns the last member with a key: agents use the last one.
func (c *container) find(key string) (member, bool) {
	for _, m := range slices.Backward(c.members) {
		if m.key == key {
			return m, true
		}
	}
	return member{}, false
}

// insert returns the text with a part at a position.
func insert(text []byte, at int, part string) []byte {
	return append(append(bytes.Clone(text[:at]), part...), text[at:]...)
}

// add returns the text with a new member at the end of an object.
func (c *container) add(text []byte, key, value string, depth int) []byte {
	part := `"` + key + `": ` + value
	if n := len(c.members); n > 0 {
		last := c.members[n-1]
		between := newline(depth)
		if n > 1 { // as the members before
			between = string(text[c.members[n-2].end:last.begin])
			between = between[strings.IndexByte(between, ',')+1:]
		} else if gap := string(text[c.open+1 : last.begin]); gap != "" {
			between = gap
		}
		return insert(text, last.end, ","+between+part)
	}
	if depth == 0 && string(text[c.open+1:c.close]) == "\n" { // the object of a new file
		return insert(text, c.open+1, newline(depth)+part)
	}
	return insert(text, c.open+1, part+" ")
}

// append returns the text with a new element at the end of a list.
func (c *container) append(text []byte, value string) []byte {
	n := len(c.members)
	if n == 0 {
		return insert(text, c.open+1, value+" ") // the space tells Uninstall that the list was there
	}
	between := " "
	if gap := string(text[c.open+1 : c.members[0].begin]); gap != "" {
		between = gap
	}
	return insert(text, c.members[n-1].end, ","+between+value)
}

// tight reports whether the only member of a container fills it. Install writes a new list
// like this.
func (c *container) tight() bool {
	return len(c.members) == 1 && c.members[0].begin == c.open+1 && c.members[0].end == c.close
}

// remove returns the text without a member and its comma.
func (c *container) remove(text []byte, i int) []byte {
	m := c.members[i]
	from, to := m.begin, m.end
	switch {
	case i > 0:
		from = c.members[i-1].end
	case len(c.members) > 1:
		to = c.members[1].begin
	default:
		if strings.HasSuffix(string(text[c.open+1:from]), "\n  ") { // the line that add began
			from -= len(newline(0))
		} else if to < c.close && text[to] == ' ' {
			to++
		}
	}
	return append(bytes.Clone(text[:from]), text[to:]...)
}
