package declare

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// lazyMap is the input of a tool, for use in an expression. It decodes a value only when
// the expression uses it, because most expressions use one or two keys of a long input.
type lazyMap struct {
	keys   []string
	values [][]byte
	raw    json.RawMessage
	whole  traits.Mapper // the decoded input, or nil until it is needed
}

var _ traits.Mapper = (*lazyMap)(nil)

// newLazyMap finds the keys and values of a JSON object without decoding the values.
func newLazyMap(raw json.RawMessage) (*lazyMap, error) {
	m := &lazyMap{raw: raw}
	s := scanner{data: raw}
	if s.next() != '{' {
		return nil, errors.New("it is not an object")
	}
	s.at++
	for s.next() != '}' {
		key, ok := s.value()
		if !ok || len(key) == 0 || key[0] != '"' || s.next() != ':' {
			return nil, errMalformed
		}
		s.at++
		s.next()
		value, ok := s.value()
		if !ok {
			return nil, errMalformed
		}
		name, err := unquote(key)
		if err != nil {
			return nil, err
		}
		m.keys, m.values = append(m.keys, name), append(m.values, value)
		switch s.next() {
		case ',':
			s.at++
			if s.next() != '"' {
				return nil, errMalformed
			}
		case '}':
		default:
			return nil, errMalformed
		}
	}
	return m, nil
}

var errMalformed = errors.New("it is not JSON")

// scanner finds the ends of values in valid JSON, without decoding them.
type scanner struct {
	data []byte
	at   int
}

// next returns the next character that is not white space, or 0 at the end.
func (s *scanner) next() byte {
	for ; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// value skips a value and returns its bytes.
func (s *scanner) value() ([]byte, bool) {
	begin, depth := s.at, 0
	for s.at < len(s.data) {
		switch c := s.data[s.at]; c {
		case '"':
			if !s.text() {
				return nil, false
			}
			if depth == 0 {
				return s.data[begin:s.at], true
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // the end of the object or list around the value
				return s.data[begin:s.at], s.at > begin
			}
			if depth--; depth == 0 {
				s.at++
				return s.data[begin:s.at], true
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return s.data[begin:s.at], s.at > begin
			}
		}
		s.at++
	}
	return nil, false
}

// text skips a string. It returns false if the string has no end.
func (s *scanner) text() bool {
	for s.at++; s.at < len(s.data); s.at++ {
		rest := s.data[s.at:]
		i := bytes.IndexByte(rest, '"')
		if i < 0 {
			return false
		}
		if e := bytes.IndexByte(rest[:i], '\\'); e >= 0 {
			s.at += e + 1 // skip the escaped character
			continue
		}
		s.at += i + 1
		return true
	}
	return false
}

// unquote decodes a JSON string.
func unquote(quoted []byte) (string, error) {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), nil
	}
	var text string
	if err := json.Unmarshal(quoted, &text); err != nil {
		return "", errMalformed
	}
	return text, nil
}

// Find returns the value of a key.
func (m *lazyMap) Find(key ref.Val) (ref.Val, bool) { //nolint:ireturn // the interface asks for it
	name, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	found := -1
	for i, k := range m.keys {
		if k != string(name) {
			continue
		}
		if found >= 0 { // reject duplicates: another reader may use the other value
			return types.NewErr("the key %s occurs twice", k), true
		}
		found = i
	}
	if found < 0 {
		return nil, false
	}
	return valueOf(m.values[found]), true
}

func valueOf(raw []byte) ref.Val { //nolint:ireturn // it is a value of any type
	if raw[0] == '"' {
		text, err := unquote(raw)
		if err != nil {
			return types.NewErr("%v", err)
		}
		return types.String(text)
	}
	value, err := decodeAny(raw)
	if err != nil {
		return types.NewErr("%v", err)
	}
	return types.DefaultTypeAdapter.NativeToValue(value)
}

func (m *lazyMap) all() traits.Mapper { //nolint:ireturn // the library defines it
	if m.whole == nil {
		value, err := decodeAny(m.raw)
		object, ok := value.(map[string]any)
		if err != nil || !ok {
			object = nil
		}
		m.whole = types.NewStringInterfaceMap(types.DefaultTypeAdapter, object)
	}
	return m.whole
}

// The methods below are for expressions that use the whole map.

// Contains reports whether a key exists.
func (m *lazyMap) Contains(key ref.Val) ref.Val { //nolint:ireturn // the interface asks for it
	_, ok := m.Find(key)
	return types.Bool(ok)
}

// Get returns the value of a key, or a CEL error.
func (m *lazyMap) Get(key ref.Val) ref.Val { //nolint:ireturn // the interface asks for it
	if v, ok := m.Find(key); ok {
		return v
	}
	return types.NewErr("no such key: %v", key)
}

// Size returns the number of keys.
func (m *lazyMap) Size() ref.Val { return types.Int(len(m.keys)) } //nolint:ireturn // the interface asks for it

// Iterator iterates over the keys.
func (m *lazyMap) Iterator() traits.Iterator { return m.all().Iterator() } //nolint:ireturn // likewise

// Equal compares the map with another value.
func (m *lazyMap) Equal(other ref.Val) ref.Val { return m.all().Equal(other) } //nolint:ireturn // likewise

// ConvertToNative converts the map to a Go value.
func (m *lazyMap) ConvertToNative(t reflect.Type) (any, error) { return m.all().ConvertToNative(t) } //nolint:wrapcheck // the library's own

// ConvertToType converts the map to another CEL type.
func (m *lazyMap) ConvertToType(t ref.Type) ref.Val { return m.all().ConvertToType(t) } //nolint:ireturn // likewise

// Type returns the CEL type of the map.
func (m *lazyMap) Type() ref.Type { return types.MapType } //nolint:ireturn // likewise

// Value returns the map as a Go value.
func (m *lazyMap) Value() any { return m.all().Value() }
