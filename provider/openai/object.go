package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// object is a JSON object that keeps the order of its fields. The order matters in a schema:
// a model writes properties in the order of the schema.
type object []member //nolint:recvcheck // methods that append need a pointer, and literals have none

type member struct {
	key   string
	value json.RawMessage
}

// readObject decodes an object. It removes white space from the values.
func readObject(raw []byte) (object, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	} else if t != json.Delim('{') {
		return nil, errors.New("it is not a JSON object")
	}
	o := object{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("it is not JSON: %w", err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("it is not JSON: %w", err)
		}
		o.set(key.(string), compact(value)) // the last of two equal keys wins, as in encoding/json
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if d.More() {
		return nil, errors.New("there is text after the end of the JSON value")
	}
	return o, nil
}

// at returns the value of a field, or nil if there is none.
func (o object) at(key string) json.RawMessage {
	if i := o.index(key); i >= 0 {
		return o[i].value
	}
	return nil
}

func (o object) index(key string) int {
	return slices.IndexFunc(o, func(m member) bool { return m.key == key })
}

// set replaces a field, or appends it.
func (o *object) set(key string, value json.RawMessage) {
	if i := o.index(key); i >= 0 {
		(*o)[i].value = value
		return
	}
	*o = append(*o, member{key, value})
}

// take removes a field and returns its value.
func (o *object) take(key string) json.RawMessage {
	i := o.index(key)
	if i < 0 {
		return nil
	}
	value := (*o)[i].value
	*o = slices.Delete(*o, i, i+1)
	return value
}

// append appends the object as JSON.
func (o object) append(dst []byte) []byte {
	dst = append(dst, '{')
	for i, m := range o {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, m.key)
		dst = append(dst, ':')
		dst = append(dst, m.value...)
	}
	return append(dst, '}')
}

// readList decodes the elements of a JSON array. It returns nil if raw is not an array.
func readList(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

// writeList returns a JSON array.
func writeList(list []json.RawMessage) json.RawMessage {
	return slices.Concat([]byte{'['}, bytes.Join(rawBytes(list), []byte{','}), []byte{']'})
}

func rawBytes(list []json.RawMessage) [][]byte {
	all := make([][]byte, len(list))
	for i, raw := range list {
		all[i] = raw
	}
	return all
}

// compact removes the white space from valid JSON.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// appendString appends a string as JSON. Unlike encoding/json it does not escape HTML
// characters. A string has the same bytes before and after it was stored as JSON, even if it
// is not valid UTF-8.
func appendString(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	if !utf8.ValidString(s) {
		s = string([]rune(s)) // replaces each invalid byte with U+FFFD
	}
	dst = append(dst, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// quoted returns a string as JSON.
func quoted(s string) json.RawMessage { return appendString(nil, s) }
