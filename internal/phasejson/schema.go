package phasejson

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/strictjson"
	"github.com/belay-run/belay/policy"
)

// Schemas are the JSON Schemas of a phase's input and answer.
type Schemas struct {
	Phase  string          `json:"phase"`
	Input  json.RawMessage `json:"input"`
	Output json.RawMessage `json:"output"`
}

// Describe returns the JSON Schemas of the phase with the given name.
func Describe(phase string) (Schemas, error) {
	phases := belay.Phases()
	i := slices.IndexFunc(phases, func(p hook.AnyPhase) bool { return p.Name() == phase })
	if i < 0 {
		return Schemas{}, fmt.Errorf("schema: there is no phase %q: `belay hooks phases` lists them", phase)
	}
	in, out := phases[i].Types()
	input, err := schemaOf(fieldsType(in), "input of "+phase)
	if err != nil {
		return Schemas{}, fmt.Errorf("schema: %s: %w", phase, err)
	}
	output, err := schemaOf(out, "answer at "+phase, "from") // only the runtime sets the property "from"
	if err != nil {
		return Schemas{}, fmt.Errorf("schema: %s: %w", phase, err)
	}
	return Schemas{Phase: phase, Input: input, Output: output}, nil
}

// schemaOf returns the schema of a type. It leaves out the given properties at any depth.
func schemaOf(t reflect.Type, title string, leaveOut ...string) (json.RawMessage, error) {
	schema, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: typeSchemas(t)})
	if err != nil {
		return nil, fmt.Errorf("infer: %w", err)
	}
	strictjson.DropNull(schema)
	remove(schema, leaveOut)
	schema.Schema, schema.Title = "https://json-schema.org/draft/2020-12/schema", title
	data, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return data, nil
}

// remove removes properties from a schema, at any depth.
func remove(s *jsonschema.Schema, properties []string) {
	if s == nil {
		return
	}
	for _, name := range properties {
		delete(s.Properties, name)
		s.PropertyOrder = slices.DeleteFunc(s.PropertyOrder, func(o string) bool { return o == name })
	}
	for _, property := range s.Properties {
		remove(property, properties)
	}
	remove(s.Items, properties)
}

// fielded is implemented by the input of every phase.
type fielded interface{ Fields() any }

// fieldsType returns the type of an input's fields.
func fieldsType(in reflect.Type) reflect.Type {
	return reflect.TypeOf(reflect.Zero(in).Interface().(fielded).Fields())
}

// toolDecisions are the decisions of tool.pre.
var toolDecisions = []string{"pass", string(belay.ToolAsk), string(belay.ToolDeny), string(belay.ToolHalt)}

// typeSchemas returns the schemas of types in t that encode their JSON in a special way.
// Types of the root package have a method AnyJSON or Words for this.
func typeSchemas(t reflect.Type) map[reflect.Type]*jsonschema.Schema {
	schemas := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage]():    {Not: &jsonschema.Schema{Type: "null"}},
		reflect.TypeFor[policy.Settings]():    {Type: "object"},
		reflect.TypeFor[belay.ToolDecision](): words(toolDecisions),
		reflect.TypeFor[hook.Job]():           jobSchema(),
	}
	seen := make(map[reflect.Type]bool)
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		if seen[t] || schemas[t] != nil {
			return
		}
		seen[t] = true
		switch special := reflect.Zero(t).Interface().(type) {
		case interface{ AnyJSON() }:
			schemas[t] = &jsonschema.Schema{}
			return
		case interface{ Words() []string }:
			schemas[t] = words(special.Words())
			return
		}
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			add(t.Elem())
		case reflect.Struct:
			for _, f := range reflect.VisibleFields(t) {
				if f.IsExported() {
					add(f.Type)
				}
			}
		default:
		}
	}
	add(t)
	return schemas
}

// words returns the schema of a string that must be one of the words.
func words(words []string) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, word := range words {
		s.Enum = append(s.Enum, word)
	}
	return s
}

// jobSchema describes the fields of a job that a hook sets.
func jobSchema() *jsonschema.Schema {
	text := func(description string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "string", Description: description}
	}
	return &jsonschema.Schema{
		Type: "object",
		Properties: map[string]*jsonschema.Schema{
			"handler":   text("a registered job handler"),
			"reference": text("a reference to the place in the transcript that has the job's input"),
			"key":       text("the idempotency key"),
			"at":        {Type: "string", Format: "date-time", Description: "the earliest time to run; now by default"},
		},
		Required:             []string{"handler", "key"},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
}
