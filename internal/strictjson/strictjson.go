// Package strictjson decodes JSON strictly, and lists the rules of a JSON Schema that a
// value breaks.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/belay-run/belay/internal/near"
)

// Decode decodes one JSON value. An unknown key is an error, and so is text after the
// value.
func Decode(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is text after the JSON value")
	}
	return nil
}

// CheckKeys returns an error if an object has a duplicate key, or two keys that differ only
// in case. Go's decoder treats such keys as equal, but other decoders do not.
func CheckKeys(data []byte) error {
	if haveDistinctKeys(data) { // fast path: ordinary objects
		return nil
	}
	return checkKeys(json.NewDecoder(bytes.NewReader(data)))
}

func checkKeys(d *json.Decoder) error {
	token, err := d.Token()
	if err != nil {
		return err //nolint:wrapcheck // the caller does
	}
	open, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	seen := make(map[string]bool)
	for d.More() {
		if open == '{' {
			key, err := d.Token()
			if err != nil {
				return err //nolint:wrapcheck // the caller does
			}
			name, _ := key.(string)
			folded := fold(name)
			if seen[folded] {
				return fmt.Errorf("the key %q occurs twice", name)
			}
			seen[folded] = true
		}
		if err := checkKeys(d); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err //nolint:wrapcheck // the caller does
}

// Ambiguous reports the same problem as CheckKeys, but faster. value is the decoded input.
func Ambiguous(input json.RawMessage, value any) bool {
	keys, inString := 0, false
	for i := 0; i < len(input); i++ {
		switch c := input[i]; {
		case c == '\\' && inString:
			i++
		case c == '"':
			inString = !inString
		case c == ':' && !inString:
			keys++
		}
	}
	kept, clash := countKeys(value)
	return clash || kept != keys
}

// fold returns the form of a key that encoding/json compares. It replaces each letter by
// the smallest equivalent letter in Unicode. For example, the long s (ſ) becomes S.
func fold(key string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return least
	}, key)
}

// countKeys counts the keys of all objects in a value. It also reports whether an object
// has two keys that differ only in case.
func countKeys(value any) (n int, clash bool) {
	switch v := value.(type) {
	case map[string]any:
		n = len(v)
		var folded map[string]bool
		for key, inner := range v {
			if low := fold(key); low != key || folded != nil {
				if folded == nil { // make the set of folded keys once for each object
					folded = make(map[string]bool, len(v))
					for other := range v {
						if f := fold(other); folded[f] {
							clash = true
						} else {
							folded[f] = true
						}
					}
				}
			}
			more, inside := countKeys(inner)
			n, clash = n+more, clash || inside
		}
	case []any:
		for _, inner := range v {
			more, inside := countKeys(inner)
			n, clash = n+more, clash || inside
		}
	}
	return n, clash
}

// Violations returns the rules of a schema that a value breaks, each with a JSON pointer.
// It checks all objects and arrays inside the value, so that one mistake does not hide
// another. It leaves out rules that only the whole schema can check.
func Violations(s *jsonschema.Schema, value any) []string {
	v := &violations{root: s}
	v.walk(s, value, "")
	return v.found
}

type violations struct {
	root  *jsonschema.Schema
	found []string
}

func (v *violations) report(at, message string) {
	if at == "" {
		at = "(root)"
	}
	v.found = append(v.found, at+": "+message)
}

// follow returns the definition that a schema refers to, if the root schema has it.
func (v *violations) follow(s *jsonschema.Schema) *jsonschema.Schema {
	for range 10 { // stops at a schema that only refers to itself
		if s != nil && s.Ref == "" && len(s.AllOf) == 1 && s.Type == "" && s.Types == nil {
			s = s.AllOf[0]
		}
		name, ok := "", false
		if s != nil {
			name, ok = strings.CutPrefix(s.Ref, "#/$defs/")
		}
		if !ok || v.root.Defs[name] == nil {
			return s
		}
		s = v.root.Defs[name]
	}
	return nil
}

func (v *violations) walk(s *jsonschema.Schema, value any, at string) {
	if s = v.follow(s); s == nil {
		return
	}
	before := len(v.found)
	if why := brokenRule(s, value); why != "" {
		v.report(at, why)
		return
	}
	switch inner := value.(type) {
	case map[string]any:
		v.walkObject(s, inner, at)
	case []any:
		for i, item := range inner {
			v.walk(s.Items, item, at+"/"+strconv.Itoa(i))
		}
	}
	if len(v.found) > before {
		return
	}
	resolved, err := s.CloneSchemas().Resolve(nil)
	if err != nil {
		return // the schema refers to definitions that only the root schema has
	}
	if err := resolved.Validate(value); err != nil {
		v.report(at, lastOf(err.Error()))
	}
}

func (v *violations) walkObject(s *jsonschema.Schema, object map[string]any, at string) {
	for _, name := range s.Required {
		if _, ok := object[name]; !ok {
			v.report(at+"/"+pointer(name), "it is required")
		}
	}
	closed := s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil && len(s.PatternProperties) == 0
	for _, name := range slices.Sorted(maps.Keys(object)) {
		property, known := s.Properties[name]
		switch {
		case known:
			v.walk(property, object[name], at+"/"+pointer(name))
		case closed:
			v.report(at+"/"+pointer(name), "this property does not exist"+near.Hint(name, slices.Collect(maps.Keys(s.Properties))))
		case s.AdditionalProperties != nil && len(s.PatternProperties) == 0:
			v.walk(s.AdditionalProperties, object[name], at+"/"+pointer(name))
		}
	}
}

// lastOf removes the positions from a validator's message. Our message already has a JSON
// pointer.
func lastOf(message string) string {
	for strings.HasPrefix(message, "validating ") {
		_, rest, ok := strings.Cut(message, ": ")
		if !ok {
			break
		}
		message = rest
	}
	return message
}

// pointer escapes a name for a JSON pointer.
func pointer(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// DropNull removes null from the types of a schema. The JSON must leave out an optional
// value instead.
func DropNull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if i := slices.Index(s.Types, "null"); i >= 0 && len(s.Types) == 2 {
		s.Type, s.Types = s.Types[1-i], nil
	}
	for _, property := range s.Properties {
		DropNull(property)
	}
	DropNull(s.Items)
}
