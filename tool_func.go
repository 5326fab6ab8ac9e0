package belay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/belay-run/belay/internal/typeschema"
)

// NewTool makes a tool from a Go function. It makes the JSON Schema of the input from the
// struct type In. Each field is a property:
//
//   - The json tag is its name. The property is required unless the tag says omitempty or
//     omitzero, the field is a pointer, or the field has a default. A null for a property that
//     is not required means that the property is absent. The tag required:"true" makes any
//     field required, and null is invalid for it.
//   - The jsonschema tag is its description.
//   - The tags enum:"low,high", minimum, maximum, minLength, maxLength, minItems, maxItems,
//     pattern and format are rules. For a list they are rules for its items, except minItems
//     and maxItems. The tag default is the value of an absent property. Defaults inside an
//     absent struct apply too, unless the struct is a pointer or has required fields.
//   - A type can have a method JSONSchema() map[string]any, whose keywords are added to its
//     schema, for example an enum. A type with UnmarshalText is a string. A type with
//     UnmarshalJSON must have the method JSONSchema.
//   - A [time.Duration] may be written as "1h30m". A []byte is base64. A
//     [encoding/json.RawMessage] is any value.
//
// An input with a property that In does not have is invalid. If a Go type cannot describe
// the input, use [NewRawTool] and write the schema.
//
// A returned string or [Result] is the result itself. Any other value is encoded as JSON.
// If the function returns an error, the model gets the error as a failed result.
//
// NewTool panics if run is nil, or if it cannot make a schema from In, because only a
// mistake of the programmer can cause that. The message has the path of the Go field and says
// what to write instead.
func NewTool[In, Out any](name, description string, run func(ctx context.Context, in In) (Out, error), traits *ToolTraits) Tool { //nolint:ireturn // a tool is used through the interface
	tool, err := newTool(name, description, run, traits)
	if err != nil {
		panic(fmt.Sprintf("belay.NewTool %q: %v", name, err))
	}
	return tool
}

func newTool[In, Out any](name, description string, run func(ctx context.Context, in In) (Out, error), traits *ToolTraits) (Tool, error) { //nolint:ireturn // see NewTool
	if run == nil {
		return nil, errors.New("run is nil: pass a function")
	}
	t := reflect.TypeFor[In]()
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("the input type is %s: use a struct, whose fields become the properties", t)
	}
	input, err := typeschema.For(t)
	if err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	schema, err := json.Marshal(input.Schema)
	if err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	call := func(ctx context.Context, call *Invocation) (Result, error) {
		var in In
		if err := input.Decode(call.Input, &in); err != nil {
			return Failed(ClassInvalid, "The input of "+name+" cannot be read:\n- "+err.Error()), nil //nolint:nilerr // the result tells
		}
		if CallOf(ctx) != call {
			ctx = context.WithValue(ctx, callKey{}, call)
		}
		out, err := run(ctx, in)
		if err != nil {
			return Result{}, err
		}
		return resultOf(&out)
	}
	tool := &functionTool{declaration: ToolDeclaration{Name: name, Description: description, InputSchema: schema}, run: call, input: input}
	if traits != nil {
		tool.traits = *traits
	}
	return tool, nil
}

type callKey struct{}

// CallOf returns the tool call that a context belongs to. Use it in the function of a
// tool made with NewTool, for example to report progress. The result is nil if ctx is not
// the context of a tool call.
func CallOf(ctx context.Context) *Invocation {
	call, _ := ctx.Value(callKey{}).(*Invocation)
	return call
}

// NewRawTool makes a tool from a function that decodes its input itself. Use it if the
// schema is not known when the program is compiled. Otherwise use [NewTool].
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
	input       *typeschema.Type // nil for a raw tool
}

var _ TraitTool = (*functionTool)(nil)

func (t *functionTool) Declaration() ToolDeclaration { return t.declaration }
func (t *functionTool) Traits() ToolTraits           { return t.traits }
func (t *functionTool) inputType() *typeschema.Type  { return t.input }

func (t *functionTool) Call(ctx context.Context, call *Invocation) (Result, error) {
	return t.run(ctx, call)
}

// resultOf makes a result from the value that a tool has returned. It takes a pointer,
// because a value in an interface needs an allocation.
func resultOf[Out any](out *Out) (Result, error) {
	switch v := any(out).(type) {
	case *Result:
		return *v, nil
	case *string:
		return Result{Text: *v}, nil
	}
	return resultOfValue(*out)
}

// resultOfValue is resultOf for a value whose type is not known when the tool is compiled.
func resultOfValue(out any) (Result, error) {
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
		return Result{}, errors.New("the result cannot be encoded as JSON: " + err.Error())
	}
	return Result{Text: string(data)}, nil
}
