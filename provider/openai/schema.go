package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay/provider/internal/wire"
)

// atTop are the keywords that the service rejects at the top level of a schema.
var atTop = []string{"anyOf", "oneOf", "allOf", "enum", "const", "not"}

// fitSchema returns a schema that the service accepts, or an error if that is impossible. It
// moves keywords that the service rejects into the description. Belay still validates every
// input against the original schema. The form of inputs stays the same, so nothing must be
// translated back.
func fitSchema(raw json.RawMessage) (json.RawMessage, error) {
	if text := strings.TrimSpace(string(raw)); text == "" || text == "true" {
		return json.RawMessage(`{"type":"object","properties":{}}`), nil
	}
	schema, err := readObject(wire.ReplaceLoneSurrogates(raw))
	if err != nil {
		return nil, fmt.Errorf("its schema: %w", err)
	}
	top := &topSchema{object: schema, defs: schema}
	if err := top.fit(); err != nil {
		return nil, fmt.Errorf("its schema: %w", err)
	}
	for i := range top.object {
		m := &top.object[i]
		m.value = fitBelow(m.key, m.value)
	}
	return top.object.append(nil), nil
}

// topSchema is a schema during the translation.
type topSchema struct {
	object

	defs object // the original schema, for $ref
}

// fit changes the top level of a schema so that the service accepts it.
func (t *topSchema) fit() error {
	for range maxReferences { // the target of a $ref may have a $ref
		reference := t.take("$ref")
		if reference == nil {
			break
		}
		for _, m := range t.resolve(reference) {
			if t.index(m.key) < 0 {
				t.set(m.key, m.value)
			}
		}
	}
	t.take("$ref") // there are too many references, perhaps a cycle
	if raw := t.at("properties"); raw != nil && raw[0] != '{' {
		return fmt.Errorf("its properties must be an object, not %s", raw)
	}
	if !mayBe(t.at("type"), "object") {
		return fmt.Errorf("the input of a tool must be an object, but the schema has the type %s: declare an object with this value as a property", t.at("type"))
	}
	var note object
	for _, keyword := range atTop {
		value := t.take(keyword)
		if value == nil {
			continue
		}
		if (keyword == "enum" || keyword == "const") && !holdsObject(keyword, value) {
			return fmt.Errorf("the input of a tool must be an object, but %s does not allow an object: declare an object with this value as a property", keyword)
		}
		note.set(keyword, value)
	}
	if string(t.at("type")) != `"object"` {
		t.take("type")
		t.object = slices.Concat(object{{"type", quoted("object")}}, t.object)
	}
	properties := t.properties(note)
	if t.index("properties") < 0 || len(note) > 0 {
		t.set("properties", properties.append(nil))
	}
	t.require(note.at("allOf"))
	if len(note) > 0 {
		describeIn(&t.object, "The input must also fit this JSON Schema: "+string(note.append(nil)))
	}
	return nil
}

const maxReferences = 8

// resolve returns the target of a reference into the schema, or nil.
func (t *topSchema) resolve(reference json.RawMessage) object {
	var path string
	if json.Unmarshal(reference, &path) != nil || !strings.HasPrefix(path, "#/") {
		return nil
	}
	here := t.defs
	for step := range strings.SplitSeq(path[len("#/"):], "/") {
		next, err := readObject(here.at(strings.NewReplacer("~1", "/", "~0", "~").Replace(step)))
		if err != nil {
			return nil
		}
		here = next
	}
	return here
}

// properties returns the properties of the schema and of the alternatives in note.
func (t *topSchema) properties(note object) object {
	all, err := readObject(t.at("properties"))
	if err != nil {
		all = object{}
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		for _, branch := range t.branches(note.at(keyword)) {
			some, err := readObject(branch.at("properties"))
			if err != nil {
				continue
			}
			for _, m := range some {
				if all.index(m.key) < 0 {
					all.set(m.key, m.value)
				}
			}
		}
	}
	return all
}

// branches returns the schemas in the list of a keyword such as anyOf.
func (t *topSchema) branches(raw json.RawMessage) []object {
	var all []object
	for _, one := range readList(raw) {
		branch, err := readObject(one)
		if err != nil {
			continue
		}
		if reference := branch.take("$ref"); reference != nil {
			branch = append(branch, t.resolve(reference)...)
		}
		all = append(all, branch)
	}
	return all
}

// require adds the required names of the schemas in allOf.
func (t *topSchema) require(allOf json.RawMessage) {
	required := readList(t.at("required"))
	before := len(required)
	for _, branch := range t.branches(allOf) {
		for _, name := range readList(branch.at("required")) {
			if !slices.ContainsFunc(required, func(have json.RawMessage) bool { return string(have) == string(name) }) {
				required = append(required, name)
			}
		}
	}
	if len(required) > before {
		t.set("required", writeList(required))
	}
}

// describeIn adds a note to the description of a schema.
func describeIn(schema *object, note string) {
	var text string
	if json.Unmarshal(schema.at("description"), &text) == nil && text != "" {
		note = text + "\n\n" + note
	}
	schema.set("description", quoted(note))
}

// mayBe reports whether the type in a schema allows values of a kind. A schema without a
// type allows all kinds.
func mayBe(raw json.RawMessage, kind string) bool {
	if raw == nil {
		return true
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return one == kind
	}
	return slices.ContainsFunc(readList(raw), func(raw json.RawMessage) bool { return string(raw) == `"`+kind+`"` })
}

// holdsObject reports whether the value of enum or const contains an object.
func holdsObject(keyword string, raw json.RawMessage) bool {
	values := []json.RawMessage{raw}
	if keyword == "enum" {
		values = readList(raw)
	}
	return slices.ContainsFunc(values, func(v json.RawMessage) bool { return len(v) > 0 && v[0] == '{' })
}

// Keywords whose value is a schema, a map of schemas, or a list of schemas.
var (
	schemaBelow  = []string{"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties"}
	schemasBelow = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
	listsBelow   = []string{"anyOf", "oneOf", "allOf", "prefixItems", "items"}
)

// fitBelow changes the schemas in the value of a keyword so that the service accepts
// them. The service requires that every array schema has the keyword items, even if its
// value is {}.
func fitBelow(keyword string, raw json.RawMessage) json.RawMessage {
	switch {
	case slices.Contains(schemasBelow, keyword):
		all, err := readObject(raw)
		if err != nil {
			return raw
		}
		for i := range all {
			all[i].value = fitInner(all[i].value)
		}
		return all.append(nil)
	case slices.Contains(listsBelow, keyword) && len(raw) > 0 && raw[0] == '[':
		list := readList(raw)
		for i := range list {
			list[i] = fitInner(list[i])
		}
		return writeList(list)
	case slices.Contains(schemaBelow, keyword):
		return fitInner(raw)
	default:
		return raw
	}
}

// fitInner changes a schema below the top level so that the service accepts it.
func fitInner(raw json.RawMessage) json.RawMessage {
	schema, err := readObject(raw)
	if err != nil {
		return raw // a boolean or malformed schema: send it unchanged
	}
	if schema.at("type") != nil && mayBe(schema.at("type"), "array") && schema.at("items") == nil {
		schema.set("items", json.RawMessage(`{}`))
	}
	for i := range schema {
		schema[i].value = fitBelow(schema[i].key, schema[i].value)
	}
	return schema.append(nil)
}
