package looptest_test

import (
	"context"
	"encoding/json"
	"go/types"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// fullInput returns an input of the phase with every key set.
func fullInput(t testing.TB, p phaseCase) any {
	t.Helper()
	schema := resolveSchema(t, schemaOf(t, p).Input).Schema()
	in, err := p.decode(testScope, encode(t, sample(schema, "value", true)))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// SPEC H-08
func TestInputsHaveNothingToSet(t *testing.T) {
	t.Parallel()
	for _, p := range belay.Phases() {
		in, _ := p.Types()
		if in.Kind() != reflect.Struct {
			t.Errorf("%s: the input %s is a %s, want a struct", p.Name(), in, in.Kind())
			continue
		}
		for field := range in.Fields() {
			if field.IsExported() {
				t.Errorf("%s: the field %s.%s can be set by a handler", p.Name(), in, field.Name)
			}
		}
		if extra := reflect.PointerTo(in).NumMethod() - in.NumMethod(); extra != 0 {
			t.Errorf("%s: %s has %d methods with a pointer receiver, which could change it", p.Name(), in, extra)
		}
		if !reflect.Zero(in).Comparable() {
			t.Errorf("%s: %s holds something that can be changed behind it", p.Name(), in)
		}
	}
}

// All methods of an input have value receivers, also the methods that are not exported.
//
// SPEC H-08
func TestInputMethodsHaveValueReceivers(t *testing.T) {
	t.Parallel()
	pkg, _ := typedRoot(t)
	for _, p := range belay.Phases() {
		in, _ := p.Types()
		named, ok := pkg.Scope().Lookup(in.Name()).Type().(*types.Named)
		if !ok {
			t.Fatalf("%s is not a type of the package", in)
		}
		for method := range named.Methods() {
			if _, pointer := method.Signature().Recv().Type().(*types.Pointer); pointer {
				t.Errorf("%s.%s has a pointer receiver", in, method.Name())
			}
		}
	}
}

// If a caller changes a value that an accessor returned, nothing else changes.
//
// SPEC H-08
func TestAccessorsCopy(t *testing.T) {
	t.Parallel()
	mutable := 0
	for _, p := range everyPhase() {
		in := reflect.ValueOf(fullInput(t, p))
		whole := string(encode(t, in.Interface()))
		for i := range in.NumMethod() {
			method, name := in.Method(i), in.Type().Method(i).Name
			if method.Type().NumIn() > 0 || name == "MarshalJSON" {
				continue
			}
			call := func() reflect.Value { return method.Call(nil)[0] }
			before := string(encode(t, call().Interface()))
			if scribble(call()) {
				mutable++
			}
			if after := string(encode(t, call().Interface())); after != before {
				t.Errorf("%s: %s.%s was %s and is %s after a handler scribbled over it", p.Name(), in.Type(), name, before, after)
			}
		}
		if after := string(encode(t, in.Interface())); after != whole {
			t.Errorf("%s: the input was %s and is %s", p.Name(), whole, after)
		}
	}
	if mutable < 10 {
		t.Errorf("only %d accessors gave something to scribble on: the test looks at too little", mutable)
	}
}

// scribble overwrites everything that can be reached through slices. It reports whether
// there was anything to overwrite.
func scribble(v reflect.Value) bool {
	found := false
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			scribble(v.Index(i))
			v.Index(i).SetZero()
			found = true
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && scribble(v.Field(i)) {
				found = true
			}
		}
	default:
	}
	return found
}

// Every key in the schema of a phase's input has an accessor, which returns the value of
// that key.
//
// SPEC H-08, C-12
func TestAccessorsTellTheInput(t *testing.T) {
	t.Parallel()
	special := map[string]string{"id": "ID", "latency_ns": "Latency"}
	for _, p := range everyPhase() {
		in := reflect.ValueOf(fullInput(t, p))
		for key, property := range resolveSchema(t, schemaOf(t, p).Input).Schema().Properties {
			name := special[key]
			for word := range strings.SplitSeq(key, "_") {
				if special[key] == "" {
					name += strings.ToUpper(word[:1]) + word[1:]
				}
			}
			method := in.MethodByName(name)
			if !method.IsValid() {
				if p.Name() == "turn.post_preflight_prompt_context" && key == "tools" {
					continue // the input embeds turnSoFar, but the tools are not known yet at this phase
				}
				t.Errorf("%s: the key %q has no accessor %s.%s", p.Name(), key, in.Type(), name)
				continue
			}
			want := sample(property, key, true)
			if got := decode(t, encode(t, method.Call(nil)[0].Interface())); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %s.%s is %v, want %v", p.Name(), in.Type(), name, got, want)
			}
		}
		scope := in.Interface().(interface {
			Session() string
			Turn() string
			Step() int
			Agent() string
		})
		if got := (hook.Scope{Session: scope.Session(), Turn: scope.Turn(), Step: scope.Step(), Agent: scope.Agent()}); got != testScope {
			t.Errorf("%s: the input belongs to %+v, want %+v", p.Name(), got, testScope)
		}
	}
}

// The methods of a zero input must not panic, because conditions are checked with a zero
// input.
//
// SPEC H-08
func TestZeroInputsCanBeRead(t *testing.T) {
	t.Parallel()
	for _, p := range belay.Phases() {
		in, _ := p.Types()
		for _, method := range reflect.Zero(in).Methods() {
			if method.Type().NumIn() == 0 {
				method.Call(nil) // must not panic
			}
		}
	}
}

// SPEC H-08
func TestHandlersCannotReachEachOther(t *testing.T) {
	t.Parallel()
	const original = `{"path":"a.txt"}`
	spoil := func(message json.RawMessage) {
		for i := range message {
			message[i] = 'X'
		}
	}
	var seen []string
	look := func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
		seen = append(seen, string(call.Input()), string(call.Original()))
		spoil(call.Input())
		spoil(call.Original())
		return belay.Pass, nil
	}
	outcome := dispatch(t, belay.ToolPre, inputOf(t, belay.ToolPre, `{"id": "1", "tool": "write", "input": `+original+`}`),
		belay.ToolPre.On("a", look, nil), belay.ToolPre.On("b", look, nil), belay.ToolPre.On("c", look, nil))
	if want := slices.Repeat([]string{original}, 6); !slices.Equal(seen, want) {
		t.Errorf("handlers saw %q, want the original each time", seen)
	}
	if got := string(outcome.Input.Input()); got != original {
		t.Errorf("what runs is %s, want the original", got)
	}
}

// A rewriter may keep the value that it returned. If it changes that value later, the input
// that the gates checked does not change.
//
// SPEC H-08
func TestRewrittenInputsAreCopied(t *testing.T) {
	t.Parallel()
	kept := json.RawMessage(`{"path":"safe.txt"}`)
	outcome := dispatch(t, belay.ToolPre, inputOf(t, belay.ToolPre, `{"id": "1", "tool": "write", "input": {"path":"a.txt"}}`),
		belay.ToolPre.On("rewrite", answering(belay.ToolPre, belay.ToolVerdict{Input: kept}), &hook.Options{Capabilities: hook.CanRewriteInput}),
		belay.ToolPre.On("spoil", func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
			copy(kept, `{"path":"evil.txt"}`)
			if got := string(call.Input()); got != `{"path":"safe.txt"}` {
				t.Errorf("the gate judges %s", got)
			}
			return belay.Pass, nil
		}, nil))
	if got := string(outcome.Input.Input()); got != `{"path":"safe.txt"}` {
		t.Errorf("what runs is %s, want what the gate judged", got)
	}
}
