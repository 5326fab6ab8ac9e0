package typeschema

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// rules are the tags that have a rule, in the order in which error messages list them.
var rules = []string{"enum", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern", "format", "default"}

// unsupported are keywords of JSON Schema that have no tag here.
var unsupported = []string{"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems", "minProperties", "maxProperties", "const"}

// foreign returns an error for tags in the form of other libraries. Without the error, their
// rules would not be checked.
func foreign(tag reflect.StructTag) error {
	if text := tag.Get("jsonschema"); isForeign(text) {
		return fmt.Errorf("the tag jsonschema:%q has rules in the form of another library, and here it is only the description: %s", text, translated(text))
	}
	if text, ok := tag.Lookup("jsonschema_description"); ok {
		return fmt.Errorf("the tag jsonschema_description has no effect: write jsonschema:%q instead", text)
	}
	if _, ok := tag.Lookup("jsonschema_extras"); ok {
		return errors.New("the tag jsonschema_extras has no effect: give the type a method JSONSchema() map[string]any")
	}
	for _, name := range unsupported {
		if _, ok := tag.Lookup(name); ok {
			return fmt.Errorf("the tag %s has no effect: %s", name, byMethod(name))
		}
	}
	for _, name := range rules {
		if text, ok := tag.Lookup(strings.ToLower(name)); ok && strings.ToLower(name) != name {
			return fmt.Errorf("the tag %s has no effect: write %s:%q instead", strings.ToLower(name), name, text)
		}
	}
	return nil
}

func byMethod(keyword string) string {
	return "give the type a method JSONSchema() map[string]any with " + keyword
}

// isForeign reports whether a jsonschema tag is a list such as required,enum=low,enum=high.
// A comma with a space after it belongs to a description.
func isForeign(text string) bool {
	for i, word := range strings.Split(text, ",") {
		name, _, is := strings.Cut(word, "=")
		switch {
		case is && (slices.Contains(rules, name) || slices.Contains(unsupported, name) || name == "description" || name == "title"):
			return true
		case i == 0 && word == "required" && !strings.HasPrefix(text, "required, "):
			return true
		}
	}
	return false
}

// translated says how to write a tag of another library.
func translated(text string) string {
	values := make(map[string][]string)
	description := ""
	last := &description
	for word := range strings.SplitSeq(text, ",") {
		name, value, is := strings.Cut(word, "=")
		switch {
		case is && name == "description":
			description = value
			last = &description
		case is && slices.Contains(unsupported, name):
			return byMethod(name)
		case is && !strings.HasPrefix(name, " "):
			values[name] = append(values[name], value)
			last = &values[name][len(values[name])-1]
		case strings.HasPrefix(word, " "): // the comma belongs to the text before it
			*last += "," + word
		}
	}
	var tags []string
	if description != "" {
		tags = append(tags, fmt.Sprintf("jsonschema:%q", description))
	}
	for _, name := range rules {
		if len(values[name]) > 0 {
			tags = append(tags, fmt.Sprintf("%s:%q", name, strings.Join(values[name], ",")))
		}
	}
	if len(tags) == 0 {
		return "remove the tag: a field is required unless its json tag says omitempty or omitzero, it is a pointer, or it has a default"
	}
	return "write " + strings.Join(tags, " ") + " instead"
}
