package belay

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/belay-run/belay/internal/near"
)

// validate checks an input against the tool's schema. It returns every
// violation, each with a JSON pointer to its place.
func (t *boundTool) validate(input json.RawMessage) []string {
	var value any
	if err := json.Unmarshal(input, &value); err != nil {
		return []string{"(root): it is not JSON: " + err.Error()}
	}
	object, ok := value.(map[string]any)
	if !ok {
		return []string{"(root): it must be a JSON object"}
	}
	if twoReadings(input, value) {
		return []string{"(root): a key is there twice, or in two spellings that differ only in case"}
	}
	if t.schema == nil || t.schema.Validate(object) == nil {
		return nil
	}
	var found []string
	violations(t.schema.Schema(), value, "", &found)
	if len(found) == 0 { // what only the whole schema can tell
		found = append(found, "(root): "+t.schema.Validate(object).Error())
	}
	return found
}

// twoReadings reports whether two readers could read the input in two ways, so
// that one judges what another does not run: a key is there twice, or twice but for
// its case, which Go's decoder takes for the same.
func twoReadings(input json.RawMessage, value any) bool {
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

// countKeys counts the keys of all objects in a value, and reports whether two of
// one object differ only in case.
func countKeys(value any) (n int, clash bool) {
	switch v := value.(type) {
	case map[string]any:
		n = len(v)
		var folded map[string]bool
		for key, inner := range v {
			if low := strings.ToLower(key); low != key || folded != nil {
				if folded == nil { // from here on it matters how keys are spelled
					folded = make(map[string]bool, len(v))
					for other := range v {
						if f := strings.ToLower(other); folded[f] {
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

// violations walks objects and arrays, so that each fault is found where it is
// and one does not hide another. What a value is held against by itself is left
// to the validator.
func violations(s *jsonschema.Schema, value any, at string, found *[]string) {
	report := func(at, message string) {
		if at == "" {
			at = "(root)"
		}
		*found = append(*found, at+": "+message)
	}
	if s == nil {
		return
	}
	before := len(*found)
	switch v := value.(type) {
	case map[string]any:
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				report(at+"/"+pointer(name), "it is required")
			}
		}
		closed := s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil && len(s.PatternProperties) == 0
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			property, known := s.Properties[name]
			switch {
			case known:
				violations(property, v[name], at+"/"+pointer(name), found)
			case closed:
				report(at+"/"+pointer(name), "there is no such property"+near.Hint(name, slices.Collect(maps.Keys(s.Properties))))
			}
		}
	case []any:
		for i, item := range v {
			violations(s.Items, item, at+"/"+strconv.Itoa(i), found)
		}
	}
	if len(*found) > before {
		return
	}
	alone := s.CloneSchemas()
	resolved, err := alone.Resolve(nil)
	if err != nil {
		return // it refers to its surroundings: the whole schema speaks for it
	}
	if err := resolved.Validate(value); err != nil {
		report(at, lastOf(err.Error()))
	}
}

// lastOf cuts the places that the validator puts in front of what is wrong: a
// pointer says it shorter.
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
