package typeschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"
)

// field is a field of a struct that encoding/json decodes.
type field struct {
	reflect.StructField

	name     string
	optional bool // the property may be absent
	quoted   bool // the JSON value is a string that contains the value
	tagged   bool // the name comes from the json tag
	depth    int
}

// fieldsOf returns the fields that encoding/json decodes, including those of embedded
// structs. If several fields have the same name, the least deep one wins, then the one with
// a name in its tag. Otherwise all of them are dropped.
func fieldsOf(t reflect.Type) ([]field, error) {
	var all []field
	if err := collect(t, field{}, make(map[reflect.Type]bool), &all); err != nil {
		return nil, err
	}
	var kept []field
	for i, f := range all {
		dominant := true
		for j, other := range all {
			if i != j && other.name == f.name && (other.depth < f.depth || other.depth == f.depth && (other.tagged || !f.tagged)) {
				dominant = false
			}
		}
		if dominant {
			kept = append(kept, f)
		}
	}
	return kept, nil
}

// collect adds the fields of a struct. within is the field that embeds the struct. If it is
// a pointer, all its fields are optional.
func collect(t reflect.Type, within field, above map[reflect.Type]bool, all *[]field) error {
	if above[t] {
		return nil
	}
	above[t] = true
	defer delete(above, t)
	for f := range t.Fields() {
		tag := f.Tag.Get("json")
		if tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if !isName(name) {
			name = ""
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer && inner.Name() == "" {
			inner = inner.Elem()
		}
		if f.Anonymous && name == "" && inner.Kind() == reflect.Struct {
			if err := embed(&f, inner, within, above, all); err != nil {
				return err
			}
			continue
		}
		if !f.IsExported() {
			continue
		}
		list := strings.Split(options, ",")
		*all = append(*all, field{
			StructField: f, name: orElse(name, f.Name), tagged: name != "", depth: within.depth,
			optional: within.optional || f.Tag.Get("required") != "true" &&
				(slices.Contains(list, "omitempty") || slices.Contains(list, "omitzero") || f.Type.Kind() == reflect.Pointer),
			quoted: slices.Contains(list, "string") && quotable(inner.Kind()),
		})
	}
	return nil
}

// embed adds the fields of an embedded struct.
func embed(f *reflect.StructField, inner reflect.Type, within field, above map[reflect.Type]bool, all *[]field) error {
	pointer := f.Type.Kind() == reflect.Pointer
	if pointer && !f.IsExported() {
		return fmt.Errorf("JSON cannot be decoded into the embedded pointer %s, whose type is not exported: embed the struct itself", f.Type)
	}
	return collect(inner, field{depth: within.depth + 1, optional: within.optional || pointer}, above, all)
}

// isName reports whether encoding/json accepts a name in a tag.
func isName(name string) bool {
	for _, r := range name {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return false
		}
	}
	return true
}

func orElse(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// quotable reports whether the json tag's option "string" applies to a kind.
func quotable(k reflect.Kind) bool {
	return k == reflect.Bool || k == reflect.String || k >= reflect.Int && k <= reflect.Float64
}

// property returns the schema of a field, with the rules from its tags.
func (b *builder) property(f field, at string) (*jsonschema.Schema, *node, error) {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem() // null counts as absent, and a required pointer must not be null
	}
	s, n, err := b.describe(t, at)
	if err != nil {
		return nil, nil, err
	}
	if f.quoted {
		s, n = quotedSchema(t), new(node)
	}
	if f.optional || f.Tag.Get("required") != "" {
		s = withoutNull(s)
	}
	if s.Ref != "" && f.Tag != "" { // other keywords cannot be next to $ref
		s = &jsonschema.Schema{AllOf: []*jsonschema.Schema{s}}
	}
	if text := f.Tag.Get("jsonschema"); text != "" {
		s.Description = text
	}
	if err := errors.Join(foreign(f.Tag), tags(s, f.Tag)); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", at, err)
	}
	if s.Default != nil {
		err := keepsRules(s)
		if err == nil && !f.quoted {
			err = decodes(n, s.Default, f.Type)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: the tag default:%q: %w", at, f.Tag.Get("default"), err)
		}
	}
	return s, n, nil
}

// keepsRules returns an error if a default breaks a rule of its field.
func keepsRules(s *jsonschema.Schema) error {
	resolved, err := s.CloneSchemas().Resolve(nil)
	if err != nil { // it refers to a recursive type: For checks the default in the whole schema
		return nil //nolint:nilerr // see above
	}
	var value any
	if err := json.Unmarshal(s.Default, &value); err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	if err := resolved.Validate(value); err != nil {
		return fmt.Errorf("it breaks a rule of the field: change the default or the rule: %w", err)
	}
	return nil
}

// decodes returns an error if a default cannot be decoded into its field.
func decodes(n *node, value json.RawMessage, t reflect.Type) error {
	data, err := n.rewrite(value, false, 0)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, reflect.New(t).Interface()); err != nil {
		return fmt.Errorf("it is not a %s: write a default that the type accepts: %w", t, err)
	}
	return nil
}

func quotedSchema(t reflect.Type) *jsonschema.Schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Bool:
		return &jsonschema.Schema{Type: "string", Enum: []any{"true", "false"}}
	case t.Kind() == reflect.String:
		return &jsonschema.Schema{Type: "string", Pattern: `^".*"$`, Description: "a JSON string within a string"}
	case t.Kind() < reflect.Float32:
		return &jsonschema.Schema{Type: "string", Pattern: `^-?[0-9]+$`, Description: "a whole number within a string"}
	default:
		return &jsonschema.Schema{Type: "string", Pattern: `^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$`, Description: "a number within a string"}
	}
}

// withoutNull removes null from the types of a schema.
func withoutNull(s *jsonschema.Schema) *jsonschema.Schema {
	if i := slices.Index(s.Types, "null"); i >= 0 {
		s.Types = slices.Delete(slices.Clone(s.Types), i, i+1)
		if len(s.Types) == 1 {
			s.Type, s.Types = s.Types[0], nil
		}
	}
	return s
}

// tags adds the rules from a field's tags to its schema.
func tags(s *jsonschema.Schema, tag reflect.StructTag) error {
	rules := s // the rules of a list apply to its items
	if s.Items != nil {
		rules = s.Items
	}
	var problems []error
	if text, ok := tag.Lookup("required"); ok && text != "true" {
		problems = append(problems, fmt.Errorf("the tag required:%q: write required:\"true\", or json:\",omitempty\" for an optional field", text))
	}
	if _, ok := tag.Lookup("default"); ok && tag.Get("required") == "true" {
		problems = append(problems, errors.New("a required field cannot have a default: remove the tag required or the tag default"))
	}
	take := func(name string, set func(text string) error) {
		if text, ok := tag.Lookup(name); ok {
			if err := set(text); err != nil {
				problems = append(problems, fmt.Errorf("the tag %s:%q: %w", name, text, err))
			}
		}
	}
	take("enum", func(text string) error {
		rules.Enum = nil // the tag replaces the enum of the type
		for word := range strings.SplitSeq(text, ",") {
			v, err := valueOf(rules, strings.TrimSpace(word))
			if err != nil {
				return err
			}
			rules.Enum = append(rules.Enum, v)
		}
		return nil
	})
	take("minimum", bound(&rules.Minimum, rules))
	take("maximum", bound(&rules.Maximum, rules))
	take("minLength", count(&rules.MinLength, "a string", rules))
	take("maxLength", count(&rules.MaxLength, "a string", rules))
	take("minItems", count(&s.MinItems, "an array", s))
	take("maxItems", count(&s.MaxItems, "an array", s))
	text := func(to *string) func(string) error {
		return func(text string) error {
			if !hasType(rules, "string") {
				return errors.New("the field is not a string: remove the tag")
			}
			*to = text
			return nil
		}
	}
	take("pattern", func(pattern string) error {
		if _, err := regexp.Compile(pattern); err != nil {
			return fmt.Errorf("correct the regular expression: %w", err)
		}
		return text(&rules.Pattern)(pattern)
	})
	take("format", text(&rules.Format))
	take("default", func(text string) error {
		v, err := valueOf(s, text)
		if err != nil {
			return err
		}
		if _, ok := v.(string); !ok {
			s.Default = json.RawMessage(text) // keep the text, because float64 would change large numbers
			return nil
		}
		s.Default, err = json.Marshal(v)
		return err
	})
	if s.MinItems != nil && *s.MinItems > 0 || s.MinLength != nil && *s.MinLength > 0 {
		withoutNull(s) // null has no items or characters, so it is too short
	}
	return errors.Join(problems...)
}

// bound returns a function that sets a minimum or maximum from a tag.
func bound(to **float64, of *jsonschema.Schema) func(text string) error {
	return func(text string) error {
		if hasType(of, "string") || !hasType(of, "integer") && !hasType(of, "number") {
			return errors.New("the field is not a number: remove the tag, and check the value in your function")
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return errors.New("write a number")
		}
		*to = &v
		return nil
	}
}

// count returns a function that sets a number of characters or items from a tag.
func count(to **int, kind string, of *jsonschema.Schema) func(text string) error {
	return func(text string) error {
		if _, name, _ := strings.Cut(kind, " "); !hasType(of, name) {
			return fmt.Errorf("the field is not %s: remove the tag", kind)
		}
		v, err := strconv.Atoi(text)
		if err != nil || v < 0 {
			return errors.New("write a whole number, 0 or more")
		}
		*to = &v
		return nil
	}
}

func hasType(s *jsonschema.Schema, name string) bool {
	return s.Type == name || slices.Contains(s.Types, name)
}

// valueOf reads a value from a tag. A string is used unchanged; other types are JSON.
func valueOf(s *jsonschema.Schema, text string) (any, error) {
	if hasType(s, "string") {
		return text, nil
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return nil, errors.New("write JSON, because the field is not a string")
	}
	return v, nil
}
