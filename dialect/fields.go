package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// fields is a JSON object.
type fields map[string]json.RawMessage

// object decodes a JSON object. It also accepts a string with a JSON object in it, because
// GitHub Copilot passes inputs like this. No input is an empty object.
func object(data json.RawMessage) (fields, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || string(data) == "null" {
		return fields{}, nil
	}
	if data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return nil, fmt.Errorf("is not valid JSON: %w", err)
		}
		data = []byte(text)
	}
	var f fields
	if err := json.Unmarshal(data, &f); err != nil || f == nil {
		return nil, errors.New("is not a JSON object")
	}
	return f, nil
}

// text returns the first of these keys that has a string, or nil.
func (f fields) text(keys ...string) *string {
	for _, key := range keys {
		var s *string
		if json.Unmarshal(f[key], &s) == nil && s != nil {
			return s
		}
	}
	return nil
}

// only returns the string of these keys, or nil. If two of the keys have different strings,
// it returns an error: an agent uses one of them, and a guard must not look at the other. A
// value that is not a string is an error for the same reason.
func (f fields) only(keys ...string) (*string, error) {
	var found *string
	from := ""
	for _, key := range keys {
		s := f.text(key)
		switch {
		case s == nil && f[key] != nil && string(bytes.TrimSpace(f[key])) != "null":
			return nil, fmt.Errorf("its input %s is not a text", key)
		case s == nil:
		case found == nil:
			found, from = s, key
		case *found != *s:
			return nil, fmt.Errorf("its inputs %s and %s contradict each other", from, key)
		}
	}
	return found, nil
}

// list returns the first of these keys that has a list of objects, or nil.
func (f fields) list(keys ...string) []fields {
	for _, key := range keys {
		var l []fields
		if json.Unmarshal(f[key], &l) == nil && len(l) > 0 {
			return l
		}
	}
	return nil
}

// put sets a key to a string. It does nothing if the string is nil.
func (f fields) put(key string, value *string) {
	if value == nil {
		return
	}
	if data, err := json.Marshal(*value); err == nil { // a string always has a JSON form
		f[key] = data
	}
}

// copy sets a key to the first of these keys that the other object has.
func (f fields) copy(key string, from fields, keys ...string) {
	for _, k := range keys {
		if value, ok := from[k]; ok && string(value) != "null" {
			f[key] = value
			return
		}
	}
}

func (f fields) encode() (json.RawMessage, error) {
	data, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encode the input: %w", err)
	}
	return data, nil
}
