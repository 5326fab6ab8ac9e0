package looptest_test

import (
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/phasejson"
	"github.com/belay-run/belay/policy"
)

// DecodeInput accepts every input that the schema of the phase allows. The decoded input
// encodes to the same JSON.
//
// SPEC C-12
func TestInputsFollowTheirSchema(t *testing.T) {
	t.Parallel()
	for _, p := range everyPhase() {
		t.Run(p.Name(), func(t *testing.T) {
			t.Parallel()
			resolved := resolveSchema(t, schemaOf(t, p).Input)
			for name, full := range map[string]bool{"every key": true, "required keys": false} {
				instance := sample(resolved.Schema(), "value", full)
				if err := resolved.Validate(instance); err != nil {
					t.Fatalf("with %s, the sample itself is wrong: %v", name, err)
				}
				in, err := p.decode(testScope, encode(t, instance))
				if err != nil {
					t.Fatalf("with %s: %v", name, err)
				}
				again := decode(t, encode(t, in))
				if diff := cmp.Diff(instance, again); diff != "" {
					t.Errorf("an input with %s does not come back (-sent +returned):\n%s", name, diff)
				}
			}
			zero, err := p.decode(testScope, []byte("{}"))
			if err != nil {
				t.Fatal(err)
			}
			if err := resolved.Validate(decode(t, encode(t, zero))); err != nil {
				t.Errorf("a zero input is written as %s, which its schema refuses: %v", encode(t, zero), err)
			}
		})
	}
}

// SPEC C-12
func TestAnswersFollowTheirSchema(t *testing.T) {
	t.Parallel()
	for _, p := range everyPhase() {
		t.Run(p.Name(), func(t *testing.T) {
			t.Parallel()
			resolved := resolveSchema(t, schemaOf(t, p).Output)
			_, out := p.Types()
			filled := reflect.New(out).Elem()
			fill(t, filled)
			data := encode(t, filled.Interface())
			if err := resolved.Validate(decode(t, data)); err != nil {
				t.Errorf("a Go answer is written as %s, which its schema refuses: %v", data, err)
			}
			if missing := missingKeys(resolved.Schema(), decode(t, data), ""); len(missing) > 0 {
				t.Errorf("the schema has keys that no Go answer has: %s", missing)
			}
			data = encode(t, reflect.Zero(out).Interface())
			if string(data) != "{}" || resolved.Validate(decode(t, data)) != nil {
				t.Errorf("no opinion is written as %s, want {}, which its schema takes", data)
			}
			instance := sample(resolved.Schema(), "value", true)
			read := reflect.New(out)
			if err := json.Unmarshal(encode(t, instance), read.Interface()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(instance, decode(t, encode(t, read.Interface()))); diff != "" {
				t.Errorf("an answer of every key does not come back (-sent +returned):\n%s", diff)
			}
		})
	}
}

// A misspelled key must be an error. Otherwise an answer with this key would count as "no
// opinion".
//
// SPEC C-12
func TestUnknownKeysAreRefused(t *testing.T) {
	t.Parallel()
	for _, p := range everyPhase() {
		t.Run(p.Name(), func(t *testing.T) {
			t.Parallel()
			schema := schemaOf(t, p)
			for kind, text := range map[string]json.RawMessage{"input": schema.Input, "output": schema.Output} {
				resolved := resolveSchema(t, text)
				everyObject(resolved.Schema(), sample(resolved.Schema(), "value", true), kind, func(where string, object map[string]any, root any) {
					object["surprise"] = "x"
					defer delete(object, "surprise")
					if resolved.Validate(root) == nil {
						t.Errorf("the schema takes an unknown key in %s", where)
					}
					if kind != "input" {
						return
					}
					_, err := p.decode(testScope, encode(t, root))
					if err == nil || !strings.Contains(err.Error(), "surprise") || !strings.Contains(err.Error(), p.Name()) {
						t.Errorf("DecodeInput with an unknown key in %s says %v, want an error that quotes key and phase", where, err)
					}
				})
			}
			for _, bad := range []string{"", "[]", `"text"`, "{} {}", "{", `{"surprise": 1}`} {
				if _, err := p.decode(testScope, []byte(bad)); err == nil {
					t.Errorf("DecodeInput takes %q", bad)
				}
			}
		})
	}
}

// In JSON, leave a key out if it has no value: null is an error.
//
// SPEC C-12
func TestNullIsRefused(t *testing.T) {
	t.Parallel()
	for _, p := range belay.Phases() {
		schema := schemaOf(t, p)
		for kind, text := range map[string]json.RawMessage{"input": schema.Input, "output": schema.Output} {
			resolved := resolveSchema(t, text)
			if resolved.Validate(nil) == nil {
				t.Errorf("%s %s: the schema takes null", p.Name(), kind)
			}
			everyObject(resolved.Schema(), sample(resolved.Schema(), "value", true), p.Name()+" "+kind, func(where string, object map[string]any, root any) {
				for key, value := range maps.Clone(object) {
					if object, ok := value.(map[string]any); ok && object["any"] != nil && kind == "input" {
						continue // the input of a tool call may be null
					}
					object[key] = nil
					if resolved.Validate(root) == nil {
						t.Errorf("%s: the schema takes null for %s", where, key)
					}
					object[key] = value
				}
			})
		}
	}
}

// SPEC C-12
func TestAnswersShareTheirKeys(t *testing.T) {
	t.Parallel()
	words := map[string][]any{ // the decisions of each gate
		"user.prompt.submit": {"pass", "deny"},
		"tool.pre":           {"pass", "ask", "deny", "halt"},
		"approval.request":   {"pass", "allow", "deny"},
		"subagent.start":     {"pass", "deny"},
		"turn.stop":          {"pass", "continue"},
	}
	own := map[string][]string{ // the keys that only this phase has
		"user.prompt.submit":                 {"prompt", "answer"},
		"turn.pre_policy":                    {"policy"},
		"turn.pre_prompt_context":            {"entries"},
		"turn.post_preflight_prompt_context": {"entries"},
		"turn.pre_tool_materialization":      {"bundles"},
		"turn.pre_prompt_compile":            {"sections"},
		"tool.pre":                           {"input"},
		"tool.post":                          {"result"},
		"turn.pre_compaction":                {"instructions"},
	}
	for _, p := range belay.Phases() {
		want := append([]string{"audit", "jobs", "output"}, own[p.Name()]...)
		if p.Info().Kind != hook.Observe {
			want = append(want, "context")
		}
		if p.Info().Kind == hook.Gate {
			want = append(want, "decision", "reason")
		}
		slices.Sort(want)
		schema := resolveSchema(t, schemaOf(t, p).Output).Schema()
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(schema.Properties))); diff != "" {
			t.Errorf("%s: the answer has other keys (-promised +schema):\n%s", p.Name(), diff)
		}
		if p.Info().Kind == hook.Gate {
			if diff := cmp.Diff(words[p.Name()], schema.Properties["decision"].Enum); diff != "" {
				t.Errorf("%s: decision has other words (-promised +schema):\n%s", p.Name(), diff)
			}
		}
		if len(schema.Required) > 0 {
			t.Errorf("%s: the answer requires %s, so that {} is not no opinion", p.Name(), schema.Required)
		}
	}
}

// An unknown decision is an error. The error lists the decisions of the gate.
//
// SPEC C-12
func TestUnknownDecisionsAreRefused(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, p := range belay.Phases() {
		if p.Info().Kind != hook.Gate {
			continue
		}
		_, out := p.Types()
		enum := resolveSchema(t, schemaOf(t, p).Output).Schema().Properties["decision"].Enum
		for _, word := range []string{"pass", "ask", "deny", "halt", "allow", "continue", "Deny", "block", "yes", " deny"} {
			err := json.Unmarshal(encode(t, map[string]any{"decision": word}), reflect.New(out).Interface())
			if want := slices.Contains(enum, any(word)); want != (err == nil) {
				t.Errorf("%s: reading the decision %q gives %v", p.Name(), word, err)
			}
			known[word] = known[word] || err == nil
			if err != nil && !strings.Contains(err.Error(), "pass, ") {
				t.Errorf("%s: the error %q does not list the words", p.Name(), err)
			}
		}
	}
	if !known["pass"] || known["block"] {
		t.Errorf("known words: %v", known)
	}
}

// SPEC C-12
func TestSchemaOfAnUnknownPhase(t *testing.T) {
	t.Parallel()
	_, err := phasejson.Describe("tool.pree")
	if err == nil || !strings.Contains(err.Error(), `"tool.pree"`) || !strings.Contains(err.Error(), "belay hooks phases") {
		t.Errorf("the error %v does not say what is wrong and what to do", err)
	}
}

func schemaOf(t testing.TB, p hook.AnyPhase) phasejson.Schemas {
	t.Helper()
	schema, err := phasejson.Describe(p.Name())
	if err != nil {
		t.Fatal(err)
	}
	if schema.Phase != p.Name() {
		t.Errorf("the schema of %s says it is of %s", p.Name(), schema.Phase)
	}
	return schema
}

// resolveSchema checks that a schema is valid and resolves it.
func resolveSchema(t testing.TB, text []byte) *jsonschema.Resolved {
	t.Helper()
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// sample makes an instance of a schema, with all keys or only the required ones. It
// supports the parts of JSON Schema that our schemas use.
func sample(s *jsonschema.Schema, name string, full bool) any {
	switch {
	case len(s.Enum) > 0:
		return s.Enum[len(s.Enum)-1]
	case s.Format == "date-time":
		return "2026-01-02T03:04:05Z"
	}
	switch s.Type {
	case "string":
		return name + " <é>"
	case "integer":
		return 7.0
	case "number":
		return 1.5
	case "boolean":
		return true
	case "array":
		return []any{sample(s.Items, name, full)}
	case "object":
		object := map[string]any{}
		for key, property := range s.Properties {
			if full || slices.Contains(s.Required, key) {
				object[key] = sample(property, key, full)
			}
		}
		if s.Properties == nil { // the schema allows any key
			object["some.key"] = []any{"a", 1.0}
		}
		return object
	default:
		return map[string]any{"any": []any{"JSON", 1.0, nil}}
	}
}

// everyObject calls f for each object in an instance, if the schema lists the keys of the
// object.
func everyObject(s *jsonschema.Schema, root any, where string, f func(where string, object map[string]any, root any)) {
	var walk func(s *jsonschema.Schema, instance any, where string)
	walk = func(s *jsonschema.Schema, instance any, where string) {
		switch instance := instance.(type) {
		case []any:
			walk(s.Items, instance[0], where+"[0]")
		case map[string]any:
			if s.Properties == nil {
				return
			}
			f(where, instance, root)
			for key, property := range s.Properties {
				walk(property, instance[key], where+"."+key)
			}
		}
	}
	walk(s, root, where)
}

// missingKeys returns the keys of a schema that an instance does not have.
func missingKeys(s *jsonschema.Schema, instance any, where string) []string {
	var missing []string
	switch instance := instance.(type) {
	case []any:
		return missingKeys(s.Items, instance[0], where+"[0]")
	case map[string]any:
		for key, property := range s.Properties {
			value, ok := instance[key]
			if !ok {
				missing = append(missing, where+"."+key)
			}
			missing = append(missing, missingKeys(property, value, where+"."+key)...)
		}
	}
	return missing
}

// fill sets every exported field of a Go value.
func fill(t testing.TB, v reflect.Value) {
	t.Helper()
	switch value := v.Addr().Interface().(type) {
	case *time.Time:
		*value = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		return
	case *json.RawMessage:
		*value = json.RawMessage(`{"any": 1}`)
		return
	case *policy.Settings:
		*value = belay.SetPolicy(policy.Min[int]("some.key").Set(3)).Policy
		return
	case *hook.Job: // the runtime fills in the other fields of a job
		*value = hook.Job{Handler: "handler", Reference: "reference", Key: "key", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
		return
	case encoding.TextUnmarshaler: // the type is a decision
		for _, word := range []string{"halt", "continue", "deny"} {
			if value.UnmarshalText([]byte(word)) == nil {
				return
			}
		}
		t.Fatalf("%s takes no known word", v.Type())
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("text <é>")
	case reflect.Int:
		v.SetInt(7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case reflect.Struct:
		for i := range v.NumField() {
			// The runtime fills in From.
			if field := v.Type().Field(i); field.IsExported() && field.Name != "From" {
				fill(t, v.Field(i))
			}
		}
	default:
		t.Fatalf("fill does not know %s", v.Type())
	}
}

func encode(t testing.TB, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decode(t testing.TB, data []byte) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	return value
}
