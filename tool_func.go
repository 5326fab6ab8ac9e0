package belay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/belay-run/belay/internal/strictjson"
	"github.com/google/jsonschema-go/jsonschema"
)

// NewTool makes a tool from a Go function. The schema of its input is made from the fields
// of In: the json tag names a property, which is required unless the tag has omitempty or
// omitzero; the whole jsonschema tag is its description; unknown properties are refused.
// For more, such as an enum or a limit, use [NewRawTool] and write the schema.
//
// The returned value is the result: a text as it is, a [Result] as it is, and anything else
// as JSON. The model gets an error as a failed result.
//
// NewTool panics if there is no function, or if In is not a struct that JSON can hold, as
// regexp.MustCompile panics for a mistake of the programmer.
func NewTool[In, Out any](name, description string, run func(ctx context.Context, in In) (Out, error), traits *ToolTraits) Tool { //nolint:ireturn // a tool is used through the interface
	tool, err := newTool(name, description, run, traits)
	if err != nil {
		panic(fmt.Sprintf("belay.NewTool %q: %v", name, err))
	}
	return tool
}

func newTool[In, Out any](name, description string, run func(ctx context.Context, in In) (Out, error), traits *ToolTraits) (Tool, error) { //nolint:ireturn // see NewTool
	if run == nil {
		return nil, errors.New("there is no function to run")
	}
	schema, err := inputSchema[In]()
	if err != nil {
		return nil, err
	}
	return NewRawTool(ToolDeclaration{Name: name, Description: description, InputSchema: schema},
		func(ctx context.Context, call *Invocation) (Result, error) {
			var in In
			if err := json.Unmarshal(call.Input, &in); err != nil {
				return Failed(ClassInvalid, "input: "+err.Error()), nil //nolint:nilerr // the result tells
			}
			out, err := run(ctx, in)
			if err != nil {
				return Result{}, err
			}
			return resultOf(out)
		}, traits), nil
}

// NewRawTool makes a tool from a function that decodes its input itself. Use it if the
// schema is not known when the program is compiled; use [NewTool] otherwise.
func NewRawTool(declaration ToolDeclaration, run func(ctx context.Context, call *Invocation) (Result, error), traits *ToolTraits) Tool { //nolint:ireturn // see NewTool
	t := &functionTool{declaration: declaration, run: run}
	if traits != nil {
		t.traits = *traits
	}
	return t
}

type functionTool struct {
	declaration ToolDeclaration
	traits      ToolTraits
	run         func(ctx context.Context, call *Invocation) (Result, error)
}

var _ TraitTool = (*functionTool)(nil)

func (t *functionTool) Declaration() ToolDeclaration { return t.declaration }
func (t *functionTool) Traits() ToolTraits           { return t.traits }

func (t *functionTool) Call(ctx context.Context, call *Invocation) (Result, error) {
	return t.run(ctx, call)
}

func inputSchema[In any]() (json.RawMessage, error) {
	t := reflect.TypeFor[In]()
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("its input is a %s: want a struct, whose fields become the properties", t)
	}
	schema, err := jsonschema.ForType(t, &jsonschema.ForOptions{})
	if err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	strictjson.DropNull(schema)
	return json.Marshal(schema)
}

func resultOf(out any) (Result, error) {
	switch v := out.(type) {
	case Result:
		return v, nil
	case string:
		return Result{Text: v}, nil
	case nil:
		return Result{}, nil
	}
	data, err := json.Marshal(out)
	if err != nil {
		return Result{}, errors.New("the result has no JSON form: " + err.Error())
	}
	return Result{Text: string(data)}, nil
}
