package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/belay-run/belay"
)

// object is a JSON object of the OpenAPI document. Its keys are sorted, so that the document
// is the same every time.
type object = map[string]any

// OpenAPI returns the OpenAPI 3.1 document of the API. It is the same for every server.
func OpenAPI() ([]byte, error) {
	d := &document{schemas: make(object)}
	paths := make(object)
	for _, op := range operations() {
		described, err := d.operation(&op)
		if err != nil {
			return nil, fmt.Errorf("operation %s: %w", op.id, err)
		}
		at, ok := paths[op.path].(object)
		if !ok {
			at = make(object)
			paths[op.path] = at
		}
		at[strings.ToLower(op.method)] = described
	}
	if _, err := d.component(reflect.TypeFor[Problem]()); err != nil {
		return nil, err
	}
	whole := object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Belay", "version": "1",
			"description": "Sessions, turns, events, approvals and hook runs of the agents that `belay serve` serves. Every request needs a token: `Authorization: Bearer TOKEN`.",
		},
		"security":   []any{object{"token": []any{}}},
		"paths":      paths,
		"components": object{"schemas": d.schemas, "securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}}},
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(whole); err != nil {
		return nil, fmt.Errorf("encode the OpenAPI document: %w", err)
	}
	return out.Bytes(), nil
}

// openAPI makes the document once.
var openAPI = sync.OnceValue(func() []byte {
	data, err := OpenAPI()
	if err != nil { // a test finds it
		panic(err)
	}
	return data
})

// document collects the schemas of an OpenAPI document.
type document struct{ schemas object }

// operation describes one operation.
func (d *document) operation(op *operation) (object, error) {
	properties, required, err := inputSchema(op)
	if err != nil {
		return nil, err
	}
	out := object{
		"operationId": op.id, "summary": op.summary, "tags": []any{op.tag},
		"description": fmt.Sprintf("Needs the role %s.%s", op.role, limitedNote(op)),
	}
	var parameters []any
	body, needed := make(object), []any{}
	for _, p := range op.places() {
		schema := properties[p.name]
		isRequired := slices.Contains(required, p.name)
		if p.in == "body" {
			if body[p.name] = schema; isRequired {
				needed = append(needed, p.name)
			}
			continue
		}
		parameter := object{"name": p.name, "in": p.in, "schema": schema}
		if s, ok := schema.(object); ok && s["description"] != nil {
			parameter["description"] = s["description"]
			delete(s, "description")
		}
		if isRequired || p.in == "path" {
			parameter["required"] = true
		}
		parameters = append(parameters, parameter)
	}
	if parameters != nil {
		out["parameters"] = parameters
	}
	if len(body) > 0 {
		schema := object{"type": "object", "properties": body, "additionalProperties": false}
		if len(needed) > 0 {
			schema["required"] = needed
		}
		out["requestBody"] = object{"required": len(needed) > 0, "content": object{"application/json": object{"schema": schema}}}
	}
	responses, err := d.responses(op)
	out["responses"] = responses
	return out, err
}

func limitedNote(op *operation) string {
	if op.unlimited {
		return " A token that is limited to labels cannot use it."
	}
	return ""
}

// responses describes the responses of an operation.
func (d *document) responses(op *operation) (object, error) {
	ok := object{"description": "Success"}
	switch {
	case op.events != nil:
		event, err := d.component(reflect.TypeFor[belay.Event]())
		if err != nil {
			return nil, err
		}
		ok["description"] = "Server-sent events: " + strings.Join(op.events, ", ")
		content := object{}
		if op.id == "sessionEvents" {
			content = object{"schema": event}
		}
		ok["content"] = object{"text/event-stream": content}
	case op.media:
		ok["content"] = object{"*/*": object{}}
	case op.out != nil:
		schema, err := d.component(op.out)
		if err != nil {
			return nil, err
		}
		ok["content"] = object{"application/json": object{"schema": schema}}
	}
	return object{
		strconv.Itoa(op.status): ok,
		"default":               object{"description": "A problem document", "content": object{"application/problem+json": object{"schema": object{"$ref": "#/components/schemas/Problem"}}}},
	}, nil
}

// component adds the schema of a type to the components, and returns a reference to it.
func (d *document) component(t reflect.Type) (object, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name := componentName(t)
	reference := object{"$ref": "#/components/schemas/" + name}
	if _, known := d.schemas[name]; known {
		return reference, nil
	}
	described, err := typeOf(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	schema, err := generic(described.Schema)
	if err != nil {
		return nil, err
	}
	if defs, ok := schema["$defs"].(object); ok {
		for def, inner := range defs {
			d.schemas[def] = opened(inner)
		}
		delete(schema, "$defs")
	}
	d.schemas[name] = opened(schema)
	return reference, nil
}

// componentName returns the name of a type in the document.
func componentName(t reflect.Type) string {
	first, size := utf8.DecodeRuneInString(t.Name())
	return strings.TrimSuffix(string(unicode.ToUpper(first))+t.Name()[size:], "Out")
}

// generic returns a schema as plain JSON values.
func generic(schema any) (object, error) {
	data, err := json.Marshal(schema)
	if err != nil {
		return nil, fmt.Errorf("encode a schema: %w", err)
	}
	var out object
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("decode a schema: %w", err)
	}
	return out, nil
}

// opened makes the schema of a response: later versions may add properties. It also lets
// references point to the components.
func opened(value any) any {
	switch v := value.(type) {
	case object:
		if _, closed := v["additionalProperties"].(object); closed && v["properties"] != nil {
			delete(v, "additionalProperties")
		}
		if closed, ok := v["additionalProperties"].(bool); ok && !closed {
			delete(v, "additionalProperties")
		}
		if ref, ok := v["$ref"].(string); ok {
			v["$ref"] = strings.Replace(ref, "#/$defs/", "#/components/schemas/", 1)
		}
		for key, inner := range v {
			v[key] = opened(inner)
		}
	case []any:
		for i := range v {
			v[i] = opened(v[i])
		}
	}
	return value
}

// inputSchema returns the properties of an operation's input, and which are required.
func inputSchema(op *operation) (properties object, required []string, err error) {
	schema, err := generic(op.input.Schema)
	if err != nil {
		return nil, nil, err
	}
	properties, _ = schema["properties"].(object)
	words, _ := schema["required"].([]any)
	for _, w := range words {
		required = append(required, fmt.Sprint(w))
	}
	return properties, required, nil
}

// tags returns the groups of operations, in the order of the table.
func tags(all []operation) []string {
	var out []string
	for i := range all {
		if !slices.Contains(out, all[i].tag) {
			out = append(out, all[i].tag)
		}
	}
	return out
}

// sortedKeys returns the keys of an object in order.
func sortedKeys(o object) []string { return slices.Sorted(maps.Keys(o)) }
