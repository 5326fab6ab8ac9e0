package gemini

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

// CheckTools returns an error that lists the tools that cannot be declared to the service,
// with the reasons. A request with such a tool fails with the same error before it is sent.
func (m *Model) CheckTools(tools []belay.ToolDeclaration) error {
	_, _, err := declare(tools)
	return err
}

// sentSchema returns a schema that the service accepts, or an error if that is impossible.
// Most schemas need no change, because the service ignores unknown keywords. But it requires
// the type object and does not know the schemas true and false. It also rejects a reference
// that has other keywords beside it or points outside the schema. The result may allow more
// inputs than the original. Belay validates inputs against the original.
func sentSchema(raw json.RawMessage) (json.RawMessage, error) {
	raw = wire.ReplaceLoneSurrogates(raw)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var root any
	if err := d.Decode(&root); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if d.More() {
		return nil, errors.New("it is not JSON: there is text after the end of the JSON value")
	}
	w := &writer{root: root}
	written, err := w.schema(root, nil)
	if err != nil {
		return nil, err
	}
	object, ok := written.(map[string]any)
	if !ok {
		return nil, errors.New("the schema must be a JSON object")
	}
	if err := w.asObject(object); err != nil {
		return nil, err
	}
	if !w.changed {
		return raw, nil
	}
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return data, nil
}

// writer copies a schema and expands its references.
type writer struct {
	root    any
	changed bool
	nodes   int
}

// maxNodes limits the size of the result. Nested references can grow exponentially.
const maxNodes = 20_000

// Keywords whose value is a schema, a list of schemas, or a map of schemas.
var (
	oneSchema   = []string{"items", "additionalItems", "contains", "not", "if", "then", "else", "propertyNames"}
	listSchemas = []string{"anyOf", "oneOf", "allOf", "prefixItems"}
	mapSchemas  = []string{"properties", "patternProperties", "dependentSchemas"}
	definitions = []string{"$defs", "definitions"}
)

// schema copies a schema. within lists the references that are being expanded.
func (w *writer) schema(node any, within []string) (any, error) {
	if w.nodes++; w.nodes > maxNodes {
		return nil, fmt.Errorf("the schema is too large: it has more than %d parts after its references are expanded", maxNodes)
	}
	switch node := node.(type) {
	case bool:
		w.changed = true
		if node {
			return map[string]any{}, nil
		}
		return map[string]any{"not": map[string]any{}}, nil
	case map[string]any:
		if target, ok := node["$ref"].(string); ok {
			return w.reference(node, target, within)
		}
		return w.keywords(node, within)
	default:
		return node, nil // malformed: send it unchanged
	}
}

// reference replaces a reference with a copy of its target. Keywords beside the reference
// override those of the target. If a target refers to itself, the inner reference is dropped,
// so the copy allows any value at that position.
func (w *writer) reference(node map[string]any, target string, within []string) (any, error) {
	w.changed = true
	beside := maps.Clone(node)
	delete(beside, "$ref")
	said, err := w.keywords(beside, within)
	if err != nil || slices.Contains(within, target) {
		return said, err
	}
	found, ok := w.find(target)
	if !ok {
		return nil, fmt.Errorf("the reference %q points to nothing in the schema", target)
	}
	written, err := w.schema(found, append(slices.Clone(within), target))
	if err != nil {
		return nil, err
	}
	object, ok := written.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the reference %q does not point to a schema", target)
	}
	maps.Copy(object, said)
	return object, nil
}

// keywords copies the keywords of a schema. It drops definitions, because no reference to
// them remains.
func (w *writer) keywords(node map[string]any, within []string) (map[string]any, error) {
	written := make(map[string]any, len(node))
	for _, key := range slices.Sorted(maps.Keys(node)) {
		value := node[key]
		var err error
		switch list, isList := value.([]any); {
		case slices.Contains(definitions, key):
			w.changed = true
			continue
		case isList && slices.Contains(listSchemas, key):
			all := make([]any, len(list))
			for i := range list {
				if all[i], err = w.schema(list[i], within); err != nil {
					return nil, err
				}
			}
			value = all
		case slices.Contains(mapSchemas, key):
			value, err = w.byName(value, within)
		case slices.Contains(oneSchema, key):
			value, err = w.schema(value, within)
		case key == "additionalProperties":
			if _, isBool := value.(bool); !isBool { // true and false are valid here
				value, err = w.schema(value, within)
			}
		}
		if err != nil {
			return nil, err
		}
		written[key] = value
	}
	return written, nil
}

// byName copies a map of schemas.
func (w *writer) byName(value any, within []string) (any, error) {
	named, ok := value.(map[string]any)
	if !ok {
		return value, nil
	}
	all := make(map[string]any, len(named))
	for _, name := range slices.Sorted(maps.Keys(named)) {
		schema, err := w.schema(named[name], within)
		if err != nil {
			return nil, err
		}
		all[name] = schema
	}
	return all, nil
}

// find returns the target of a reference into the schema.
func (w *writer) find(reference string) (any, bool) {
	if reference == "#" {
		return w.root, true
	}
	path, ok := strings.CutPrefix(reference, "#/")
	if !ok {
		return nil, false
	}
	node := w.root
	for step := range strings.SplitSeq(path, "/") {
		if node, ok = below(node, step); !ok {
			return nil, false
		}
	}
	return node, true
}

// below follows one step of a reference: a key of an object, or an index in a list.
func below(node any, step string) (any, bool) {
	if plain, err := url.PathUnescape(step); err == nil {
		step = plain
	}
	switch node := node.(type) {
	case map[string]any:
		found, ok := node[unescape.Replace(step)]
		return found, ok
	case []any:
		if n, err := strconv.Atoi(step); err == nil && n >= 0 && n < len(node) {
			return node[n], true
		}
	}
	return nil, false
}

// unescape decodes the escapes in a step of a reference (RFC 6901).
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// asObject sets the type of a schema to object. It returns an error if the schema does not
// allow objects.
func (w *writer) asObject(schema map[string]any) error {
	switch kind := schema["type"].(type) {
	case string:
		if kind == "object" {
			return nil
		}
	case []any:
		if slices.Contains(kind, any("object")) {
			schema["type"], w.changed = "object", true
			return nil
		}
	case nil:
		if schema["enum"] == nil && schema["const"] == nil {
			schema["type"], w.changed = "object", true
			return nil
		}
	}
	return errors.New("the schema's type must be object: the service accepts no other type")
}
