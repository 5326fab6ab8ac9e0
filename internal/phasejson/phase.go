// Package phasejson connects phases with handlers outside Go: commands, workers and
// webhooks. A handler gets the phase's input as JSON and answers with JSON. The answer is
// decoded strictly into the phase's output type. The JSON Schemas of input and answer are
// made from the Go types.
package phasejson

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

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/strictjson"
)

// Phase is a phase for handlers outside Go.
type Phase struct {
	hook.AnyPhase
	schema   *jsonschema.Schema
	resolved *jsonschema.Resolved
	fields   map[string]inputField // the fields of the input, by JSON name
}

// placed is implemented by inputs that know their session, turn, step and agent.
type placed interface {
	Session() string
	Turn() string
	Step() int
	Agent() string
}

// inputField is a field of an input.
type inputField struct {
	index     []int
	omitEmpty bool
}

// Call is a call of a handler outside Go.
type Call struct {
	// Scope says which session, turn, step and agent the input belongs to.
	Scope hook.Scope
	// Input is the phase's input. It matches the schema that [Describe] returns.
	Input json.RawMessage
}

// Handler is a handler outside Go. Its answer is a JSON object that matches the schema that
// [Describe] returns. An empty answer means no opinion. If the answer does not match the
// schema, the handler has failed with hook.output_invalid.
type Handler func(ctx context.Context, call Call) (json.RawMessage, error)

// New returns the phase with the given name.
func New(phase string) (*Phase, error) {
	phases := belay.Phases()
	i := slices.IndexFunc(phases, func(p hook.AnyPhase) bool { return p.Name() == phase })
	if i < 0 {
		names := make([]string, len(phases))
		for i, p := range phases {
			names[i] = p.Name()
		}
		return nil, fmt.Errorf("there is no phase %q%s: `belay hooks phases` lists them", phase, near.Hint(phase, names))
	}
	described, err := Describe(phase)
	if err != nil {
		return nil, err
	}
	w := &Phase{AnyPhase: phases[i], schema: new(jsonschema.Schema), fields: make(map[string]inputField)}
	in, _ := w.Types()
	for _, f := range reflect.VisibleFields(fieldsType(in)) {
		if tag, ok := f.Tag.Lookup("json"); ok && f.IsExported() {
			name, rest, _ := strings.Cut(tag, ",")
			w.fields[name] = inputField{f.Index, strings.Contains(rest, "omitempty")}
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
func (w *Phase) On(id string, handler Handler, opts *hook.Options) hook.Subscription {
	// Only the phase knows its Go types. Reflection avoids a second list of all phases.
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

// handle calls the handler with an input of the phase.
func (w *Phase) handle(ctx context.Context, handler Handler, in any) (reflect.Value, error) {
	_, out := w.Types()
	data, err := encode(in)
	if err != nil {
		return reflect.Zero(out), fmt.Errorf("encode the input: %w", err)
	}
	call := Call{Input: data}
	if placed, ok := in.(placed); ok {
		call.Scope = hook.Scope{Session: placed.Session(), Turn: placed.Turn(), Step: placed.Step(), Agent: placed.Agent()}
	}
	answer, err := handler(ctx, call)
	if err != nil {
		return reflect.Zero(out), err
	}
	value, err := w.decode(answer)
	if err != nil {
		return reflect.Zero(out), &hook.SafeError{Code: codes.OutputInvalid, Message: "the hook's answer does not match the schema of the phase", Err: err}
	}
	return value, nil
}

// encode returns an input as JSON. The inputs of Belay's phases encode themselves, and
// json.Marshal would read the result once more.
func encode(in any) ([]byte, error) {
	if m, ok := in.(interface {
		fielded
		json.Marshaler
	}); ok {
		return m.MarshalJSON() //nolint:wrapcheck // handle adds context
	}
	return json.Marshal(in)
}

// Explain calls the handlers of a snapshot with an input as JSON, and reports what each
// handler did. It works like [hook.Phase.Explain] for Go code.
func (w *Phase) Explain(ctx context.Context, s *hook.Snapshot, scope hook.Scope, input json.RawMessage) (hook.Explanation, error) {
	phase := reflect.ValueOf(w.AnyPhase)
	decoded := phase.MethodByName("DecodeInput").Call([]reflect.Value{reflect.ValueOf(scope), reflect.ValueOf([]byte(input))})
	if err, _ := reflect.TypeAssert[error](decoded[1]); err != nil {
		return hook.Explanation{}, fmt.Errorf("the input does not match the schema of %s: %w", w.Name(), err)
	}
	explained := phase.MethodByName("Explain").Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(s), decoded[0]})
	x, _ := reflect.TypeAssert[hook.Explanation](explained[0])
	err, _ := reflect.TypeAssert[error](explained[1])
	return x, err
}

// Field returns one field of an input by its JSON name, without encoding the other fields.
// The value is a string, an int64, a float64, a bool or a json.RawMessage. Field reports
// false if the JSON leaves out the field.
func (w *Phase) Field(in any, name string) (any, bool) {
	data, ok := in.(fielded)
	f, known := w.fields[name]
	if !ok || !known {
		return nil, false
	}
	value := reflect.ValueOf(data.Fields()).FieldByIndex(f.index)
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

// Decisions returns the decisions that a hook can answer, or nil if the phase has none.
func (w *Phase) Decisions() []string {
	f, ok := w.answerField("decision")
	if !ok {
		return nil
	}
	if d, ok := reflect.TypeAssert[interface{ Words() []string }](reflect.Zero(f.Type)); ok {
		return d.Words()
	}
	if f.Type == reflect.TypeFor[belay.ToolDecision]() {
		return toolDecisions
	}
	return nil
}

// Gives reports whether an answer of the phase can have a field with this JSON name.
func (w *Phase) Gives(name string) bool {
	_, ok := w.answerField(name)
	return ok
}

func (w *Phase) answerField(name string) (reflect.StructField, bool) {
	_, out := w.Types()
	if out.Kind() == reflect.Pointer {
		out = out.Elem()
	}
	if out.Kind() != reflect.Struct {
		return reflect.StructField{}, false
	}
	for _, f := range reflect.VisibleFields(out) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && tag == name {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// CheckAnswer returns an error that lists the faults of an answer, each with a JSON
// pointer.
func (w *Phase) CheckAnswer(answer json.RawMessage) error {
	_, err := w.decode(answer)
	return err
}

// Fallback returns the failure mode that uses the given answer when the handler fails. It
// works like [hook.Phase.Fallback] for Go code.
func (w *Phase) Fallback(answer json.RawMessage) (hook.Failure, error) {
	value, err := w.decode(answer)
	if err != nil {
		return hook.Failure{}, err
	}
	made := reflect.ValueOf(w.AnyPhase).MethodByName("Fallback").Call([]reflect.Value{value})
	failure, _ := reflect.TypeAssert[hook.Failure](made[0])
	return failure, nil
}

// decode decodes an answer into the phase's output type. Unknown keys, duplicate keys, null
// and wrong types are errors.
func (w *Phase) decode(answer json.RawMessage) (reflect.Value, error) {
	_, out := w.Types()
	none := reflect.Zero(out)
	if trimmed := bytes.TrimSpace(answer); len(trimmed) == 0 || string(trimmed) == "{}" {
		return none, nil
	}
	var value any
	if err := json.Unmarshal(answer, &value); err != nil {
		return none, fmt.Errorf("the answer is not JSON: %w", err)
	}
	if _, ok := value.(map[string]any); !ok {
		return none, errors.New("the answer must be a JSON object")
	}
	if err := strictjson.CheckKeys(answer); err != nil {
		return none, err
	}
	if err := w.resolved.Validate(value); err != nil {
		found := strictjson.Violations(w.schema, value)
		if len(found) == 0 { // Violations finds fewer problems than Validate
			found = append(found, err.Error())
		}
		return none, errors.New(strings.Join(found, "; "))
	}
	into := reflect.New(out)
	if err := strictjson.Decode(answer, into.Interface()); err != nil {
		return none, err
	}
	return into.Elem(), nil
}
