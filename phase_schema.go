package belay

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/belay-run/belay/hook"
)

// PhaseSchema is the JSON Schemas of a phase's input and answer.
type PhaseSchema struct {
	Phase  string          `json:"phase"`
	Input  json.RawMessage `json:"input"`
	Output json.RawMessage `json:"output"`
}

// Schema makes the JSON Schemas of the phase with the given wire name, from
// its Go types. They are what commands, workers and webhooks read and answer.
func Schema(phase string) (PhaseSchema, error) {
	phases := Phases()
	i := slices.IndexFunc(phases, func(p hook.AnyPhase) bool { return p.Name() == phase })
	if i < 0 {
		return PhaseSchema{}, fmt.Errorf("schema: there is no phase %q: `belay hooks phases` lists them", phase)
	}
	in, out := phases[i].Types()
	fields := reflect.Zero(in).Interface().(interface{ fieldsType() reflect.Type }).fieldsType()
	input, err := schemaOf(fields, "input of "+phase)
	if err != nil {
		return PhaseSchema{}, fmt.Errorf("schema: %s: %w", phase, err)
	}
	output, err := schemaOf(out, "answer at "+phase, "from") // the runtime fills it in
	if err != nil {
		return PhaseSchema{}, fmt.Errorf("schema: %s: %w", phase, err)
	}
	return PhaseSchema{Phase: phase, Input: input, Output: output}, nil
}

// schemaOf makes the schema of a type, without the properties that are left
// out wherever they are.
func schemaOf(t reflect.Type, title string, leaveOut ...string) (json.RawMessage, error) {
	schema, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: typeSchemas()})
	if err != nil {
		return nil, fmt.Errorf("infer: %w", err)
	}
	tidy(schema, leaveOut)
	schema.Schema, schema.Title = "https://json-schema.org/draft/2020-12/schema", title
	data, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return data, nil
}

// tidy takes properties out, and null out of the types: on the wire a key is
// left out, and null is a mistake.
func tidy(s *jsonschema.Schema, leaveOut []string) {
	if s == nil {
		return
	}
	if i := slices.Index(s.Types, "null"); i >= 0 && len(s.Types) == 2 {
		s.Type, s.Types = s.Types[1-i], nil
	}
	for _, name := range leaveOut {
		delete(s.Properties, name)
		s.PropertyOrder = slices.DeleteFunc(s.PropertyOrder, func(o string) bool { return o == name })
	}
	for _, property := range s.Properties {
		tidy(property, leaveOut)
	}
	tidy(s.Items, leaveOut)
}

// typeSchemas describes the types whose JSON form is not their Go form.
func typeSchemas() map[reflect.Type]*jsonschema.Schema {
	words := func(words []string) *jsonschema.Schema {
		s := &jsonschema.Schema{Type: "string"}
		for _, w := range words {
			s.Enum = append(s.Enum, w)
		}
		return s
	}
	anything := &jsonschema.Schema{}
	something := &jsonschema.Schema{Not: &jsonschema.Schema{Type: "null"}}
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[rawJSON]():          anything,
		reflect.TypeFor[json.RawMessage]():  something,
		reflect.TypeFor[PolicySettings]():   {Type: "object"},
		reflect.TypeFor[PromptDecision]():   words(promptDecisions),
		reflect.TypeFor[ToolDecision]():     words(toolDecisions),
		reflect.TypeFor[ApprovalDecision](): words(approvalDecisions),
		reflect.TypeFor[SubagentDecision](): words(subagentDecisions),
		reflect.TypeFor[StopDecision]():     words(stopDecisions),
		reflect.TypeFor[hook.Job]():         jobSchema(),
	}
}

// jobSchema is the part of a job that a hook fills in.
func jobSchema() *jsonschema.Schema {
	text := func(description string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "string", Description: description}
	}
	return &jsonschema.Schema{
		Type: "object",
		Properties: map[string]*jsonschema.Schema{
			"handler":   text("a registered job handler"),
			"reference": text("where in the transcript the work's input is"),
			"key":       text("the idempotency key"),
			"at":        {Type: "string", Format: "date-time", Description: "the earliest time to run; now by default"},
		},
		Required:             []string{"handler", "key"},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
}
