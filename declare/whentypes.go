package declare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/belay-run/belay/internal/phasejson"
)

// shape is the part of a JSON Schema that is needed to check expressions.
type shape struct {
	Type       string           `json:"type"`
	Properties map[string]shape `json:"properties"`
	Items      *shape           `json:"items"`
}

// fieldTypes tells CEL the types of the fields of a phase's input. They come from the
// phase's JSON Schema.
type fieldTypes struct {
	types.Provider
	root    string
	objects map[string]map[string]*types.FieldType
}

func newFieldTypes(phase string, schema json.RawMessage) (*fieldTypes, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, fmt.Errorf("types: %w", err)
	}
	var s shape
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", phase, err)
	}
	p := &fieldTypes{Provider: registry, root: phase + ".input", objects: make(map[string]map[string]*types.FieldType)}
	p.add(p.root, s)
	return p, nil
}

// add adds an object type with its fields.
func (p *fieldTypes) add(name string, s shape) *types.Type {
	fields := make(map[string]*types.FieldType, len(s.Properties))
	p.objects[name] = fields
	for key, property := range s.Properties {
		t := p.typeOf(name+"."+key, property)
		fields[key] = &types.FieldType{
			Type: t,
			IsSet: func(target any) bool {
				o, ok := target.(*object)
				return ok && o.has(key)
			},
			GetFrom: func(target any) (any, error) {
				o, ok := target.(*object)
				if !ok {
					return nil, fmt.Errorf("no field %s", key)
				}
				return o.field(key, t)
			},
		}
	}
	return cel.ObjectType(name)
}

func (p *fieldTypes) typeOf(name string, s shape) *types.Type {
	switch {
	case s.Type == "string":
		return types.StringType
	case s.Type == "integer":
		return types.IntType
	case s.Type == "number":
		return types.DoubleType
	case s.Type == "boolean":
		return types.BoolType
	case s.Type == "array" && s.Items != nil:
		return types.NewListType(p.typeOf(name, *s.Items))
	case s.Type == "object" && len(s.Properties) > 0:
		return p.add(name, s)
	case s.Type == "object":
		return types.NewMapType(types.StringType, types.DynType)
	default:
		return types.DynType
	}
}

// FindStructType returns the object type with the given name.
func (p *fieldTypes) FindStructType(name string) (*types.Type, bool) {
	if _, ok := p.objects[name]; ok {
		return types.NewTypeTypeWithParam(cel.ObjectType(name)), true
	}
	return p.Provider.FindStructType(name)
}

// FindStructFieldNames returns the field names of an object type.
func (p *fieldTypes) FindStructFieldNames(name string) ([]string, bool) {
	if fields, ok := p.objects[name]; ok {
		return slices.Sorted(maps.Keys(fields)), true
	}
	return p.Provider.FindStructFieldNames(name)
}

// FindStructFieldType returns the type of a field.
func (p *fieldTypes) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if fields, ok := p.objects[name]; ok {
		t, ok := fields[field]
		return t, ok
	}
	return p.Provider.FindStructFieldType(name, field)
}

// object is the input itself, or a JSON object inside it. A field is decoded only when
// the expression uses it.
type object struct {
	wire *phasejson.Phase // nil for a JSON object
	in   any
	raw  map[string]json.RawMessage
}

func newObject(data []byte) (*object, error) {
	o := new(object)
	if err := json.Unmarshal(data, &o.raw); err != nil {
		return nil, err //nolint:wrapcheck // the caller does
	}
	return o, nil
}

func (o *object) has(key string) bool {
	if o.wire == nil {
		return o.raw[key] != nil
	}
	_, ok := o.wire.Field(o.in, key)
	return ok
}

// field returns the value of a field. If the field is missing in the JSON, it returns the
// zero value of its type.
func (o *object) field(key string, t *types.Type) (any, error) {
	var value any = o.raw[key]
	ok := o.raw[key] != nil
	if o.wire != nil {
		value, ok = o.wire.Field(o.in, key)
	}
	if !ok {
		return zeroOf(t), nil
	}
	if raw, isJSON := value.(json.RawMessage); isJSON {
		return typed(raw, t)
	}
	return value, nil
}

func typed(raw json.RawMessage, t *types.Type) (any, error) {
	switch {
	case t.Kind() == types.StructKind:
		return newObject(raw)
	case t.Kind() == types.ListKind && t.Parameters()[0].Kind() == types.StructKind:
		var items []json.RawMessage
		if err := json.Unmarshal(raw, &items); err != nil {
			return nil, fmt.Errorf("a list: %w", err)
		}
		list := make([]ref.Val, len(items))
		for i, item := range items {
			o, err := newObject(item)
			if err != nil {
				return nil, err
			}
			list[i] = o
		}
		return list, nil
	case t.Kind() == types.DoubleKind:
		var f float64
		err := json.Unmarshal(raw, &f)
		return f, err //nolint:wrapcheck // the expression's error names it
	default:
		return decodeAny(raw)
	}
}

func zeroOf(t *types.Type) any {
	switch t.Kind() {
	case types.StringKind:
		return ""
	case types.IntKind:
		return int64(0)
	case types.DoubleKind:
		return 0.0
	case types.BoolKind:
		return false
	case types.ListKind:
		return []any{}
	case types.MapKind:
		return map[string]any{}
	case types.StructKind:
		return new(object)
	default:
		return types.NullValue
	}
}

// The methods below implement the CEL interface ref.Val.

// ConvertToNative always returns an error.
func (o *object) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("an object of the input is not a %s", t)
}

// ConvertToType always returns an error.
func (o *object) ConvertToType(ref.Type) ref.Val { //nolint:ireturn // the interface asks for it
	return types.NewErr("an object of the input cannot be converted: use its fields")
}

// Equal compares JSON objects by the text of their fields.
func (o *object) Equal(other ref.Val) ref.Val { //nolint:ireturn // the interface asks for it
	that, ok := other.(*object)
	if ok && o.wire != nil {
		return types.Bool(o == that)
	}
	return types.Bool(ok && maps.EqualFunc(o.raw, that.raw, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }))
}

// Type returns the dynamic type.
func (o *object) Type() ref.Type { return types.DynType } //nolint:ireturn // the interface asks for it

// Value returns the object itself.
func (o *object) Value() any { return o }

// decodeAny decodes JSON into values that CEL supports. A number without a fraction
// becomes an integer.
func decodeAny(data json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err //nolint:wrapcheck // the caller does
	}
	return native(value), nil
}

func native(value any) any {
	switch v := value.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil {
			return v.String()
		}
		return f
	case map[string]any:
		for key, inner := range v {
			v[key] = native(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = native(inner)
		}
	case nil:
		return types.NullValue
	}
	return value
}
