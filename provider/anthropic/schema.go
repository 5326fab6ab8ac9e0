package anthropic

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/belay-run/belay/provider/internal/wire"
)

// schema is a JSON Schema: values by keyword.
type schema map[string]json.RawMessage

// atTop are the keywords that the service rejects at the top level of a schema.
var atTop = []string{"allOf", "anyOf", "oneOf"}

// fitSchema returns a schema that the service accepts, or an error if that is impossible. It
// does not change a schema that the service accepts. The service rejects the keywords atTop
// at the top level. fitSchema moves them into the description, and adds their properties to
// the schema. Belay still validates every input against the original schema.
func fitSchema(raw json.RawMessage) (json.RawMessage, error) {
	if text := strings.TrimSpace(string(raw)); text == "" || text == "true" {
		return json.RawMessage(`{"type":"object"}`), nil
	}
	var top schema
	raw = wire.ReplaceLoneSurrogates(raw)
	if err := json.Unmarshal(raw, &top); err != nil || top == nil {
		return nil, fmt.Errorf("its schema is not a JSON object: %.100s", raw)
	}
	told := slices.ContainsFunc(atTop, func(keyword string) bool { return top[keyword] != nil })
	if string(top["type"]) == `"object"` && !told {
		return raw, nil
	}
	var types []string
	if top["type"] != nil && string(top["type"]) != `"object"` && (json.Unmarshal(top["type"], &types) != nil || !slices.Contains(types, "object")) {
		return nil, fmt.Errorf("the input of a tool must be an object, but its schema has the type %s: declare an object with this value as a property", top["type"])
	}
	top["type"] = json.RawMessage(`"object"`)
	if told {
		if err := top.tellAlternatives(); err != nil {
			return nil, err
		}
	}
	fit, err := json.Marshal(top)
	if err != nil {
		return nil, fmt.Errorf("its schema: %w", err)
	}
	return fit, nil
}

// tellAlternatives moves the keywords atTop into the description.
func (s schema) tellAlternatives() error {
	var properties schema
	if raw := s["properties"]; raw != nil && json.Unmarshal(raw, &properties) != nil {
		return fmt.Errorf("the properties of its schema are not an object: %.100s", raw)
	}
	if properties == nil {
		properties = schema{}
	}
	var required, more []json.RawMessage
	if raw := s["required"]; raw != nil && json.Unmarshal(raw, &required) != nil {
		return fmt.Errorf("the value of required in its schema is not a list: %.100s", raw)
	}
	note := schema{}
	for _, keyword := range atTop {
		if s[keyword] == nil {
			continue
		}
		var branches []schema
		if err := json.Unmarshal(s[keyword], &branches); err != nil {
			return fmt.Errorf("the value of %s in its schema is not a list of schemas: %w", keyword, err)
		}
		objects := 0
		for _, branch := range branches {
			branch = s.resolved(branch)
			if branch.mayBeObject() {
				objects++
			}
			properties.addFrom(branch)
			if keyword == "allOf" && json.Unmarshal(branch["required"], &more) == nil {
				required = append(required, more...)
			}
		}
		if objects == 0 || keyword == "allOf" && objects < len(branches) {
			return fmt.Errorf("the input of a tool must be an object, but %s in its schema does not allow an object: declare an object with this value as a property", keyword)
		}
		note[keyword] = s[keyword]
		delete(s, keyword)
	}
	return s.describe(properties, required, note)
}

// addFrom adds those properties of a branch that s does not have yet.
func (s schema) addFrom(branch schema) {
	var own schema
	if json.Unmarshal(branch["properties"], &own) != nil {
		return
	}
	for name, property := range own {
		if s[name] == nil {
			s[name] = property
		}
	}
}

// describe sets the properties, the required names and the description of s.
func (s schema) describe(properties schema, required []json.RawMessage, note schema) error {
	told, err := json.Marshal(note)
	if err != nil {
		return fmt.Errorf("its schema: %w", err)
	}
	text := "The input must also fit this JSON Schema: " + string(told)
	var before string
	if json.Unmarshal(s["description"], &before) == nil && before != "" {
		text = before + "\n\n" + text
	}
	fields := map[string]any{"properties": properties, "description": text}
	if len(required) > 0 {
		slices.SortFunc(required, func(a, b json.RawMessage) int { return strings.Compare(string(a), string(b)) })
		fields["required"] = slices.CompactFunc(required, func(a, b json.RawMessage) bool { return string(a) == string(b) })
	}
	for keyword, value := range fields {
		if s[keyword], err = json.Marshal(value); err != nil {
			return fmt.Errorf("its schema: %w", err)
		}
	}
	return nil
}

// resolved returns a branch. If the branch has a $ref into s, resolved merges the definition
// into the branch.
func (s schema) resolved(branch schema) schema {
	var path string
	if json.Unmarshal(branch["$ref"], &path) != nil || !strings.HasPrefix(path, "#/") {
		return branch
	}
	here := s
	for step := range strings.SplitSeq(path[len("#/"):], "/") {
		var next schema
		if json.Unmarshal(here[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)], &next) != nil {
			return branch
		}
		here = next
	}
	all := schema{}
	for _, from := range []schema{here, branch} {
		maps.Copy(all, from)
	}
	return all
}

// mayBeObject reports whether the type of a schema allows objects.
func (s schema) mayBeObject() bool {
	var one string
	var several []string
	switch {
	case s["type"] == nil:
		return true
	case json.Unmarshal(s["type"], &one) == nil:
		return one == "object"
	default:
		return json.Unmarshal(s["type"], &several) == nil && slices.Contains(several, "object")
	}
}
