// Package label describes a tool call in a few words. The most important argument comes
// first, in whatever order the model wrote the arguments.
package label

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// telling are the keys of important arguments, the most important first.
var telling = []string{"command", "pattern", "path", "url", "query", "question", "name"}

// Field is a key of an input and its value.
type Field struct {
	Key   string
	Value string // a text, or else JSON
	Text  bool
}

// Of returns the most important argument of a call, or the whole input if there is none. It
// returns the model's text unchanged, which may have many lines.
func Of(input json.RawMessage) string {
	fields, ok := Fields(input)
	if !ok {
		return string(input)
	}
	about, _ := Split(fields)
	if about == "" && len(fields) > 0 {
		return string(input)
	}
	return about
}

// Split returns the text of the most important field, and the other fields. about is empty
// if there is no important field.
func Split(fields []Field) (about string, rest []Field) {
	for _, key := range telling {
		text := value(fields, key)
		if text == "" {
			continue
		}
		told := []string{key}
		if in := value(fields, "path"); key == "pattern" && in != "" {
			told = append(told, "path")
			if in != "." {
				text += " in " + in
			}
		}
		for _, f := range fields {
			if !slices.Contains(told, f.Key) {
				rest = append(rest, f)
			}
		}
		return text, rest
	}
	return "", fields
}

// value returns the text of a field, or "" if the field is not a text. If a key occurs
// several times, value returns the last one, because a tool decodes the input in the same
// way.
func value(fields []Field, key string) string {
	for _, f := range slices.Backward(fields) {
		if f.Key == key {
			if !f.Text {
				break
			}
			return f.Value
		}
	}
	return ""
}

// Fields returns the fields of a JSON object in their order. It reports false if the input
// is not an object.
func Fields(input json.RawMessage) ([]Field, bool) {
	decoder := json.NewDecoder(bytes.NewReader(input))
	if !json.Valid(input) {
		return nil, false
	}
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, false
	}
	var fields []Field
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, false
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return nil, false
		}
		f := Field{Key: fmt.Sprint(key), Value: string(raw), Text: raw[0] == '"'}
		if f.Text {
			if err := json.Unmarshal(raw, &f.Value); err != nil {
				return nil, false
			}
		}
		fields = append(fields, f)
	}
	return fields, true
}
