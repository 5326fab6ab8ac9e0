// Package typeschema makes JSON Schemas from Go types. A schema accepts the JSON that
// encoding/json can decode into the type.
package typeschema

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/belay-run/belay/internal/lazyregexp"
)

// Type is a Go type with its JSON Schema.
type Type struct {
	// Schema describes the type. It must not be changed.
	Schema *jsonschema.Schema
	// Resolved validates inputs. Checker accepts ordinary inputs faster.
	Resolved *jsonschema.Resolved
	Checker  *Checker
	root     *node
	goType   reflect.Type
	rejects  bool // some type inside may reject a value that the schema accepts
	numbers  bool // a number inside may be too large for its type
}

// node is what decoding must know about a type.
type node struct {
	duration, integer bool
	number            reflect.Type     // set if the schema does not have all limits of the number type
	decodes           reflect.Type     // set if the type decodes its JSON itself and may reject it
	keys              reflect.Type     // set if the keys of the map are not strings
	fields            map[string]*node // the fields of an object
	required          map[string]bool
	defaults          []filled // in the order of the fields, those of structs at the end
	structs           []filled // the optional structs, which are not pointers
	elem              *node    // the items of a list, or the values of a map
	prepares          bool     // some value inside must be rewritten before decoding
	fills             bool     // some value inside has a default
}

// For makes the schema of a type.
func For(t reflect.Type) (*Type, error) {
	b := &builder{defs: make(map[reflect.Type]*definition), names: make(map[string]bool)}
	s, n, err := b.describe(t, orElse(t.Name(), "the input"))
	if err != nil {
		return nil, err
	}
	if s.Ref != "" { // a recursive type: models need an object at the top, not a reference
		s = b.defs[t].schema.CloneSchemas()
	}
	for _, d := range b.defs {
		if s.Defs == nil {
			s.Defs = make(map[string]*jsonschema.Schema)
		}
		s.Defs[d.name] = d.schema
	}
	n.settle()
	if err := n.endless(make(map[*node]bool)); err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	resolved, err := s.CloneSchemas().Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	sent, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	return &Type{
		Schema: s, Resolved: resolved, Checker: Compile(sent, true), root: n, goType: t,
		rejects: n.has(func(n *node) bool { return n.decodes != nil || n.keys != nil || n.duration }, make(map[*node]bool)),
		numbers: n.has(func(n *node) bool { return n.number != nil }, make(map[*node]bool)),
	}, nil
}

// has reports whether a node or a node inside it has the property.
func (n *node) has(property func(*node) bool, seen map[*node]bool) bool {
	if n == nil || seen[n] {
		return false
	}
	seen[n] = true
	if property(n) {
		return true
	}
	for _, inner := range n.fields {
		if inner.has(property, seen) {
			return true
		}
	}
	return n.elem.has(property, seen)
}

// endless returns an error if a default contains itself without end.
func (n *node) endless(seen map[*node]bool) error {
	if n == nil || seen[n] {
		return nil
	}
	seen[n] = true
	for _, d := range n.defaults {
		if _, err := n.fields[d.name].rewrite(d.value, true, 0); errors.Is(err, errTooDeep) {
			return fmt.Errorf("%s: its default contains itself without end: remove the default tag of the inner field", d.name)
		}
	}
	for _, inner := range append(slices.Collect(maps.Values(n.fields)), n.elem) {
		if err := inner.endless(seen); err != nil {
			return err
		}
	}
	return nil
}

// builder makes the schemas of all types that one type contains.
type builder struct {
	defs  map[reflect.Type]*definition
	names map[string]bool
}

// definition is a struct type that is being described, or that refers to itself.
type definition struct {
	name   string
	schema *jsonschema.Schema
	node   *node
	used   bool // the type refers to itself
}

var (
	jsonDecoder = reflect.TypeFor[json.Unmarshaler]()
	textDecoder = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// describer is a type that provides its own schema.
type describer interface{ JSONSchema() map[string]any }

// DurationPattern matches durations as Go writes them.
const DurationPattern = `^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`

// known returns the schemas of standard types that encode their JSON in a special way.
func known(t reflect.Type) (*jsonschema.Schema, bool) {
	switch t {
	case reflect.TypeFor[time.Time]():
		return &jsonschema.Schema{Type: "string", Format: "date-time"}, true
	case reflect.TypeFor[time.Duration]():
		return &jsonschema.Schema{Types: []string{"string", "integer"}, Pattern: DurationPattern, Description: "a duration such as 90s or 1h30m, or nanoseconds"}, true
	case reflect.TypeFor[json.RawMessage]():
		return &jsonschema.Schema{}, true
	case reflect.TypeFor[json.Number]():
		return &jsonschema.Schema{Type: "number"}, true
	case reflect.TypeFor[big.Int]():
		return &jsonschema.Schema{Type: "integer"}, true
	default:
		return nil, false
	}
}

// describe returns the schema of a type. at is the path of the type, for errors.
func (b *builder) describe(t reflect.Type, at string) (*jsonschema.Schema, *node, error) {
	if t.Kind() == reflect.Pointer {
		s, n, err := b.describe(t.Elem(), at)
		if err != nil {
			return nil, nil, err
		}
		return orNull(s), n, nil
	}
	s, n, err := b.plain(t, at)
	if err != nil {
		return nil, nil, err
	}
	more, err := own(t)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", at, err)
	}
	if more == nil {
		if s == nil {
			return nil, nil, fmt.Errorf("%s: type %s decodes its JSON itself: give it a method JSONSchema() map[string]any, or use NewRawTool", at, t)
		}
		return s, n, nil
	}
	if s == nil {
		s = new(jsonschema.Schema)
	}
	s, err = extend(s, more)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: the schema that %s.JSONSchema returns: %w", at, t, err)
	}
	return s, n, nil
}

// own calls a type's JSONSchema method.
func own(t reflect.Type) (more map[string]any, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%s.JSONSchema panics: %v: correct the method: it is called with the zero value of the type", t, v)
		}
	}()
	value := reflect.New(t)
	d, ok := reflect.TypeAssert[describer](value.Elem())
	if !ok {
		d, ok = reflect.TypeAssert[describer](value)
	}
	if !ok {
		return nil, nil //nolint:nilnil // it says nothing
	}
	return d.JSONSchema(), nil
}

// extend adds keywords to a schema.
func extend(s *jsonschema.Schema, more map[string]any) (*jsonschema.Schema, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	keywords := make(map[string]any)
	if string(data) != "true" {
		if err := json.Unmarshal(data, &keywords); err != nil {
			return nil, fmt.Errorf("read: %w", err)
		}
	}
	maps.Copy(keywords, more)
	if data, err = json.Marshal(keywords); err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	out := new(jsonschema.Schema)
	if err := json.Unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	out.PropertyOrder = s.PropertyOrder
	return out, nil
}

// orNull makes a schema accept null too.
func orNull(s *jsonschema.Schema) *jsonschema.Schema {
	switch {
	case s.Type != "" && s.Enum == nil && s.Ref == "":
		s.Types, s.Type = []string{s.Type, "null"}, ""
	case len(s.Types) > 0 && s.Enum == nil:
		if !slices.Contains(s.Types, "null") {
			s.Types = append(s.Types, "null")
		}
	case s.Enum != nil || s.Ref != "":
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{s, {Type: "null"}}}
	}
	return s
}

// plain returns the schema of a type by its kind. The schema is nil if the type decodes its
// JSON itself.
func (b *builder) plain(t reflect.Type, at string) (*jsonschema.Schema, *node, error) {
	n := new(node)
	if s, ok := known(t); ok {
		n.integer = t == reflect.TypeFor[big.Int]()
		if n.duration = t == reflect.TypeFor[time.Duration](); n.duration {
			n.number = t
		} else {
			n.decodes = t
		}
		return s, n, nil
	}
	if reflect.PointerTo(t).Implements(jsonDecoder) {
		n.decodes = t
		return nil, n, nil
	}
	if reflect.PointerTo(t).Implements(textDecoder) {
		n.decodes = t
		return &jsonschema.Schema{Type: "string"}, n, nil
	}
	switch t.Kind() {
	case reflect.String:
		return &jsonschema.Schema{Type: "string"}, n, nil
	case reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}, n, nil
	case reflect.Float32, reflect.Float64:
		n.number = t
		return &jsonschema.Schema{Type: "number"}, n, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if n.integer = true; t.Bits() == 64 {
			n.number = t
		}
		return integer(t), n, nil
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return nil, nil, fmt.Errorf("%s: JSON cannot be decoded into the interface %s: use a concrete type, json.RawMessage or any", at, t)
		}
		return new(jsonschema.Schema), n, nil
	case reflect.Slice:
		if isBytes(t) {
			n.decodes = t
			return &jsonschema.Schema{Types: []string{"string", "null"}, ContentEncoding: "base64", Pattern: `^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`}, n, nil
		}
		return b.list(t, at, n)
	case reflect.Array:
		return b.list(t, at, n)
	case reflect.Map:
		return b.dictionary(t, at, n)
	case reflect.Struct:
		return b.object(t, at)
	default:
		return nil, nil, fmt.Errorf("%s: type %s cannot be written as JSON: leave the field out with the tag json:\"-\", or use another type", at, t)
	}
}

// integer returns the schema of an integer type with its minimum and maximum. It leaves out
// limits that a float64 cannot represent.
func integer(t reflect.Type) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "integer"}
	bits := t.Bits()
	switch t.Kind() {
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		s.Minimum = new(float64)
		if bits < 64 {
			s.Maximum = new(math.Ldexp(1, bits) - 1)
		}
	default:
		if bits < 64 {
			s.Minimum, s.Maximum = new(-math.Ldexp(1, bits-1)), new(math.Ldexp(1, bits-1)-1)
		}
	}
	return s
}

// isBytes reports whether encoding/json decodes a slice type from base64.
func isBytes(t reflect.Type) bool {
	e := t.Elem()
	if e.Kind() != reflect.Uint8 {
		return false
	}
	p := reflect.PointerTo(e)
	return !p.Implements(reflect.TypeFor[json.Marshaler]()) && !p.Implements(reflect.TypeFor[encoding.TextMarshaler]()) &&
		!p.Implements(jsonDecoder) && !p.Implements(textDecoder)
}

func (b *builder) list(t reflect.Type, at string, n *node) (*jsonschema.Schema, *node, error) {
	items, elem, err := b.describe(t.Elem(), at+"[]")
	if err != nil {
		return nil, nil, err
	}
	n.elem = elem
	s := &jsonschema.Schema{Types: []string{"array", "null"}, Items: items}
	if t.Kind() == reflect.Array {
		length := t.Len()
		s = &jsonschema.Schema{Type: "array", Items: items, MinItems: &length, MaxItems: &length}
	}
	return s, n, nil
}

func (b *builder) dictionary(t reflect.Type, at string, n *node) (*jsonschema.Schema, *node, error) {
	values, elem, err := b.describe(t.Elem(), at+"{}")
	if err != nil {
		return nil, nil, err
	}
	n.elem = elem
	if t.Key().Kind() != reflect.String || reflect.PointerTo(t.Key()).Implements(textDecoder) {
		n.keys = t.Key()
	}
	s := &jsonschema.Schema{Types: []string{"object", "null"}, AdditionalProperties: values}
	switch key := t.Key(); {
	case key.Kind() == reflect.String, reflect.PointerTo(key).Implements(textDecoder):
	case key.Kind() >= reflect.Int && key.Kind() <= reflect.Int64:
		s.PropertyNames = &jsonschema.Schema{Pattern: `^-?[0-9]+$`}
	case key.Kind() >= reflect.Uint && key.Kind() <= reflect.Uintptr:
		s.PropertyNames = &jsonschema.Schema{Pattern: `^[0-9]+$`}
	default:
		return nil, nil, fmt.Errorf("%s: the keys of %s are not strings: use a map with string keys", at, t)
	}
	return s, n, nil
}

// object returns the schema of a struct. A recursive struct becomes a definition, and
// references to it are used instead.
func (b *builder) object(t reflect.Type, at string) (*jsonschema.Schema, *node, error) {
	if d := b.defs[t]; d != nil {
		d.used = true
		return d.reference(), d.node, nil
	}
	d := &definition{name: b.name(t), node: &node{fields: make(map[string]*node), required: make(map[string]bool)}}
	b.defs[t] = d
	s := &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}, Properties: make(map[string]*jsonschema.Schema)}
	d.schema = s
	fields, err := fieldsOf(t)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", at, err)
	}
	for _, f := range fields {
		where := at + "." + f.Name
		property, n, err := b.property(f, where)
		if err != nil {
			return nil, nil, err
		}
		s.Properties[f.name] = property
		s.PropertyOrder = append(s.PropertyOrder, f.name)
		d.node.fields[f.name] = n
		key, err := json.Marshal(f.name)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", where, err)
		}
		switch {
		case property.Default != nil:
			d.node.defaults = append(d.node.defaults, filled{f.name, key, property.Default})
		case !f.optional:
			s.Required = append(s.Required, f.name)
			d.node.required[f.name] = true
		case f.Type.Kind() == reflect.Struct:
			d.node.structs = append(d.node.structs, filled{f.name, key, json.RawMessage(`{}`)})
		}
	}
	if d.used {
		return d.reference(), d.node, nil
	}
	delete(b.defs, t)
	delete(b.names, d.name)
	return s, d.node, nil
}

func (d *definition) reference() *jsonschema.Schema {
	return &jsonschema.Schema{Ref: "#/$defs/" + d.name}
}

var notName = lazyregexp.New(`[^A-Za-z0-9_]+`)

// name returns a unique name for the definition of a type. It removes the package paths in
// names of generic types.
func (b *builder) name(t reflect.Type) string {
	base := t.Name()
	if i := strings.LastIndexByte(base, '/'); i >= 0 {
		base = base[:strings.IndexByte(base, '[')+1] + base[i+1:]
	}
	base = strings.Trim(notName.ReplaceAllString(base, "_"), "_")
	if base == "" {
		base = "object"
	}
	name := base
	for i := 2; b.names[name]; i++ {
		name = base + strconv.Itoa(i)
	}
	b.names[name] = true
	return name
}

// settle adds the defaults of absent structs, and sets fills and prepares of all nodes.
func (n *node) settle() {
	for n.fillStructs(make(map[*node]bool)) { // repeat, because structs are nested
	}
	for changed := true; changed; { // repeat, because types may refer to each other
		changed = n.settleOnce(make(map[*node]bool))
	}
}

// fillStructs gives each optional struct with defaults inside the default {}, so that the
// defaults apply if the struct is absent. A struct with required fields gets none, because
// {} lacks them. It reports whether it changed a node.
func (n *node) fillStructs(seen map[*node]bool) (changed bool) {
	if n == nil || seen[n] {
		return false
	}
	seen[n] = true
	for _, inner := range append(slices.Collect(maps.Values(n.fields)), n.elem) {
		changed = inner.fillStructs(seen) || changed
	}
	n.structs = slices.DeleteFunc(n.structs, func(f filled) bool {
		inner := n.fields[f.name]
		if len(inner.required) > 0 || len(inner.defaults) == 0 {
			return false
		}
		n.defaults = append(n.defaults, f)
		changed = true
		return true
	})
	return changed
}

func (n *node) settleOnce(seen map[*node]bool) (changed bool) {
	if n == nil || seen[n] {
		return false
	}
	seen[n] = true
	fills, prepares := len(n.defaults) > 0, n.duration
	for _, inner := range append(slices.Collect(maps.Values(n.fields)), n.elem) {
		if inner != nil {
			changed = inner.settleOnce(seen) || changed
			fills, prepares = fills || inner.fills, prepares || inner.prepares
		}
	}
	prepares = prepares || fills
	changed = changed || fills != n.fills || prepares != n.prepares
	n.fills, n.prepares = fills, prepares
	return changed
}
