package belay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/near"
)

// WirePhase is a phase as handlers outside Go meet it: they are given its input
// as JSON, and answer with JSON that is read strictly into the phase's output.
// The Go types, the JSON Schemas and what is read here are one thing.
type WirePhase struct {
	hook.AnyPhase
	schema   *jsonschema.Schema
	resolved *jsonschema.Resolved
	fields   map[string]wireField // of the input, by wire name
}

// wireField is a field of an input.
type wireField struct {
	index     []int
	omitEmpty bool
}

// WireCall is a call of a handler outside Go.
type WireCall struct {
	// Scope is where in a conversation the input belongs.
	Scope hook.Scope
	// Input is the phase's input, in the form that [Schema] describes.
	Input json.RawMessage
}

// WireHandler is a handler outside Go. It answers with a JSON object in the
// form that [Schema] describes; no bytes are no opinion. An answer that does not
// fit is a failure of the handler, with hook.output_invalid.
type WireHandler func(ctx context.Context, call WireCall) (json.RawMessage, error)

// Wire finds the phase with the given wire name, for handlers that are declared
// in files. Go code has the phases themselves.
func Wire(phase string) (*WirePhase, error) {
	phases := Phases()
	i := slices.IndexFunc(phases, func(p hook.AnyPhase) bool { return p.Name() == phase })
	if i < 0 {
		names := make([]string, len(phases))
		for i, p := range phases {
			names[i] = p.Name()
		}
		return nil, fmt.Errorf("there is no phase %q%s: `belay hooks phases` lists them", phase, near.Hint(phase, names))
	}
	described, err := Schema(phase)
	if err != nil {
		return nil, err
	}
	w := &WirePhase{AnyPhase: phases[i], schema: new(jsonschema.Schema), fields: make(map[string]wireField)}
	in, _ := w.Types()
	inside := reflect.Zero(in).Interface().(interface{ fieldsType() reflect.Type }).fieldsType()
	for _, f := range reflect.VisibleFields(inside) {
		if tag, ok := f.Tag.Lookup("json"); ok && f.IsExported() {
			name, rest, _ := strings.Cut(tag, ",")
			w.fields[name] = wireField{f.Index, strings.Contains(rest, "omitempty")}
		}
	}
	if err := json.Unmarshal(described.Output, w.schema); err != nil {
		return nil, fmt.Errorf("schema: %s: %w", phase, err)
	}
	if w.resolved, err = w.schema.Resolve(nil); err != nil {
		return nil, fmt.Errorf("schema: %s: %w", phase, err)
	}
	return w, nil
}

// On binds a handler to the phase, as [hook.Phase.On] does for Go code.
func (w *WirePhase) On(id string, handler WireHandler, opts *hook.Options) hook.Subscription {
	// The phase knows its types and this function does not: reflection joins the
	// two, so that the table of phases stays the only list of them.
	on := reflect.ValueOf(w.AnyPhase).MethodByName("On")
	typed := reflect.Zero(on.Type().In(1))
	if handler != nil {
		typed = reflect.MakeFunc(on.Type().In(1), func(args []reflect.Value) []reflect.Value {
			ctx, _ := reflect.TypeAssert[context.Context](args[0])
			out, err := w.handle(ctx, handler, args[1].Interface())
			failed := reflect.Zero(reflect.TypeFor[error]())
			if err != nil {
				failed = reflect.ValueOf(&err).Elem()
			}
			return []reflect.Value{out, failed}
		})
	}
	sub, _ := reflect.TypeAssert[hook.Subscription](on.Call([]reflect.Value{reflect.ValueOf(id), typed, reflect.ValueOf(opts)})[0])
	return sub
}

// handle asks the handler about an input of the phase.
func (w *WirePhase) handle(ctx context.Context, handler WireHandler, in any) (reflect.Value, error) {
	_, out := w.Types()
	data, err := json.Marshal(in)
	if err != nil {
		return reflect.Zero(out), fmt.Errorf("encode the input: %w", err)
	}
	call := WireCall{Input: data}
	if scoped, ok := in.(interface{ scope() *hook.Scope }); ok {
		call.Scope = *scoped.scope()
	}
	answer, err := handler(ctx, call)
	if err != nil {
		return reflect.Zero(out), err
	}
	value, err := w.decode(answer)
	if err != nil {
		return reflect.Zero(out), &hook.SafeError{Code: codes.OutputInvalid, Message: "the answer does not fit the phase", Err: err}
	}
	return value, nil
}

// Explain asks the handlers of a snapshot about an input in its JSON form, and tells what
// happened, as [hook.Phase.Explain] does for Go code. Handlers run.
func (w *WirePhase) Explain(ctx context.Context, s *hook.Snapshot, scope hook.Scope, input json.RawMessage) (hook.Explanation, error) {
	phase := reflect.ValueOf(w.AnyPhase)
	decoded := phase.MethodByName("DecodeInput").Call([]reflect.Value{reflect.ValueOf(scope), reflect.ValueOf([]byte(input))})
	if err, _ := reflect.TypeAssert[error](decoded[1]); err != nil {
		return hook.Explanation{}, fmt.Errorf("the input does not fit %s: %w", w.Name(), err)
	}
	explained := phase.MethodByName("Explain").Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(s), decoded[0]})
	x, _ := reflect.TypeAssert[hook.Explanation](explained[0])
	err, _ := reflect.TypeAssert[error](explained[1])
	return x, err
}

// Field reads one field of an input by its wire name, without encoding the rest. A
// text, a number and a truth value are a string, an int64 or float64, and a bool; all
// else is JSON, a json.RawMessage. It reports false for a field that the wire leaves
// out.
func (w *WirePhase) Field(in any, name string) (any, bool) {
	data, ok := in.(interface{ fieldsValue() reflect.Value })
	f, known := w.fields[name]
	if !ok || !known {
		return nil, false
	}
	value := data.fieldsValue().FieldByIndex(f.index)
	if f.omitEmpty && value.IsZero() {
		return nil, false
	}
	if value.Kind() == reflect.Pointer && !value.IsNil() {
		value = value.Elem()
	}
	if _, special := reflect.TypeAssert[json.Marshaler](value); !special {
		switch {
		case value.Kind() == reflect.String:
			return value.String(), true
		case value.Kind() == reflect.Bool:
			return value.Bool(), true
		case value.CanInt():
			return value.Int(), true
		case value.CanFloat():
			return value.Float(), true
		}
	}
	encoded, err := json.Marshal(value.Interface())
	if err != nil {
		return nil, false
	}
	return json.RawMessage(encoded), true
}

// fieldsValue is the fields, to be read and never changed.
func (i input[T]) fieldsValue() reflect.Value { return reflect.ValueOf(i.data()).Elem() }

// CheckAnswer says what is wrong with an answer, or nothing. It names each fault
// with its place in the answer.
func (w *WirePhase) CheckAnswer(answer json.RawMessage) error {
	_, err := w.decode(answer)
	return err
}

// Fallback makes the failure mode that uses an answer in place of the missing
// one, as [hook.Phase.Fallback] does for Go code.
func (w *WirePhase) Fallback(answer json.RawMessage) (hook.Failure, error) {
	value, err := w.decode(answer)
	if err != nil {
		return hook.Failure{}, err
	}
	made := reflect.ValueOf(w.AnyPhase).MethodByName("Fallback").Call([]reflect.Value{value})
	failure, _ := reflect.TypeAssert[hook.Failure](made[0])
	return failure, nil
}

// decode reads an answer into the phase's output. A key that the phase does not
// have, one that is there twice, null and a wrong type are errors.
func (w *WirePhase) decode(answer json.RawMessage) (reflect.Value, error) {
	_, out := w.Types()
	none := reflect.Zero(out)
	if trimmed := bytes.TrimSpace(answer); len(trimmed) == 0 || string(trimmed) == "{}" {
		return none, nil
	}
	var value any
	if err := json.Unmarshal(answer, &value); err != nil {
		return none, fmt.Errorf("it is not JSON: %w", err)
	}
	if _, ok := value.(map[string]any); !ok {
		return none, errors.New("it must be a JSON object")
	}
	if err := oneReading(json.NewDecoder(bytes.NewReader(answer))); err != nil {
		return none, err
	}
	if err := w.resolved.Validate(value); err != nil {
		var found []string
		violations(w.schema, value, "", &found)
		if len(found) == 0 { // what only the whole schema can tell
			found = append(found, err.Error())
		}
		return none, errors.New(strings.Join(found, "; "))
	}
	into := reflect.New(out)
	if err := decodeStrictly(answer, into.Interface()); err != nil {
		return none, err
	}
	return into.Elem(), nil
}
