package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// object is a JSON object whose fields keep their order: the order of a schema's
// properties is the one in which a model fills them in.
type object []member //nolint:recvcheck // it is a slice: what adds to it needs a pointer, and a literal has none

type member struct {
	key   string
	value json.RawMessage
}

// readObject reads an object. Its values are compact.
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
		o.set(key.(string), compact(value)) // of two with one name the last counts, as for encoding/json
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if d.More() {
		return nil, errors.New("there is something behind the JSON")
	}
	return o, nil
}

// at returns the value of a field; nil if there is none.
func (o object) at(key string) json.RawMessage {
	if i := o.index(key); i >= 0 {
		return o[i].value
	}
	return nil
}

func (o object) index(key string) int {
	return slices.IndexFunc(o, func(m member) bool { return m.key == key })
}

// set sets a field, in its place if it is there.
func (o *object) set(key string, value json.RawMessage) {
	if i := o.index(key); i >= 0 {
		(*o)[i].value = value
		return
	}
	*o = append(*o, member{key, value})
}

// take takes a field out and returns its value.
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

// readList reads the elements of an array; nil if it is none.
func readList(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

// writeList returns elements as an array.
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

// compact takes the white space out of JSON that is known to be valid.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// appendString appends a string as JSON. Unlike encoding/json it leaves the
// characters of HTML alone, and a string that has been stored as JSON and loaded
// again is written with the same bytes even if it was not valid UTF-8.
func appendString(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	if !utf8.ValidString(s) {
		s = string([]rune(s)) // each wrong byte is a replacement character
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
