package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/belay-run/belay/internal/typeschema"
)

// brokenRule returns which rule of a schema a value breaks. The text is for a model.
// brokenRule does not check the items or properties inside the value. It returns "" if the
// value breaks none of the known rules.
func brokenRule(s *jsonschema.Schema, value any) string {
	if want := typesOf(s); len(want) > 0 && !slices.ContainsFunc(want, func(t string) bool { return isA(t, value) }) {
		return fmt.Sprintf("want %s, got %s", withArticle(want), described(value))
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum, func(v any) bool { return sameJSON(v, value) }) {
		words := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			words[i] = text(v)
		}
		return fmt.Sprintf("%s is not one of %s", text(value), strings.Join(words, ", "))
	}
	if s.Const != nil && !sameJSON(*s.Const, value) {
		return fmt.Sprintf("%s is not %s", text(value), text(*s.Const))
	}
	switch v := value.(type) {
	case float64:
		return brokenBound(s, v)
	case string:
		return brokenText(s, v)
	case []any:
		return brokenCount("items", len(v), s.MinItems, s.MaxItems)
	case map[string]any:
		return brokenCount("properties", len(v), s.MinProperties, s.MaxProperties)
	}
	return ""
}

func brokenBound(s *jsonschema.Schema, v float64) string {
	switch {
	case s.Minimum != nil && v < *s.Minimum:
		return fmt.Sprintf("%s is less than the minimum %s", text(v), text(*s.Minimum))
	case s.Maximum != nil && v > *s.Maximum:
		return fmt.Sprintf("%s is more than the maximum %s", text(v), text(*s.Maximum))
	case s.ExclusiveMinimum != nil && v <= *s.ExclusiveMinimum:
		return fmt.Sprintf("%s is not more than %s", text(v), text(*s.ExclusiveMinimum))
	case s.ExclusiveMaximum != nil && v >= *s.ExclusiveMaximum:
		return fmt.Sprintf("%s is not less than %s", text(v), text(*s.ExclusiveMaximum))
	case s.MultipleOf != nil && math.Mod(v, *s.MultipleOf) != 0:
		return fmt.Sprintf("%s is not a multiple of %s", text(v), text(*s.MultipleOf))
	}
	return ""
}

func brokenText(s *jsonschema.Schema, v string) string {
	if why := brokenCount("characters", utf8.RuneCountInString(v), s.MinLength, s.MaxLength); why != "" {
		return text(v) + ": " + why
	}
	if s.Pattern != "" {
		if re, err := regexp.Compile(s.Pattern); err == nil && !re.MatchString(v) {
			if s.Pattern == typeschema.DurationPattern {
				return text(v) + " is not a duration: write it as 90s or 1h30m"
			}
			return fmt.Sprintf("%s does not match the pattern %s", text(v), s.Pattern)
		}
	}
	return ""
}

func brokenCount(what string, n int, least, most *int) string {
	switch {
	case least != nil && n < *least:
		return fmt.Sprintf("want at least %s, got %d", counted(*least, what), n)
	case most != nil && n > *most:
		return fmt.Sprintf("want at most %s, got %d", counted(*most, what), n)
	}
	return ""
}

// counted returns a number with a noun, such as 1 item or 2 items.
func counted(n int, plural string) string {
	if n == 1 {
		plural = strings.TrimSuffix(plural, "s")
	}
	return fmt.Sprint(n, " ", plural)
}

func typesOf(s *jsonschema.Schema) []string {
	if s.Type != "" {
		return []string{s.Type}
	}
	return s.Types
}

// isA reports whether a decoded value has the given JSON Schema type.
func isA(t string, value any) bool {
	switch v := value.(type) {
	case nil:
		return t == "null"
	case bool:
		return t == "boolean"
	case float64:
		return t == "number" || t == "integer" && v == math.Trunc(v)
	case string:
		return t == "string"
	case []any:
		return t == "array"
	default:
		return t == "object"
	}
}

func withArticle(types []string) string {
	words := make([]string, len(types))
	for i, t := range types {
		switch t {
		case "null":
			words[i] = t
		case "array", "integer", "object":
			words[i] = "an " + t
		default:
			words[i] = "a " + t
		}
	}
	return strings.Join(words, " or ")
}

func described(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "the boolean " + text(value)
	case float64:
		return "the number " + text(value)
	case string:
		return "the string " + text(value)
	case []any:
		return "an array"
	default:
		return "an object"
	}
}

// longestText is the maximum length of a value in a message, in characters.
const longestText = 60

func text(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if runes := []rune(string(data)); len(runes) > longestText {
		return string(runes[:longestText]) + "…"
	}
	return string(data)
}

func sameJSON(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(x, y)
}
