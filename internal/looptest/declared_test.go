package looptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/internal/phasejson"
)

// SPEC C-12
func TestWireHandlersAnswerEveryPhase(t *testing.T) {
	t.Parallel()
	rt, err := hook.NewRuntime(belay.Phases(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range belay.Phases() {
		w, err := phasejson.New(p.Name())
		if err != nil {
			t.Fatal(err)
		}
		sub := w.On("outside", func(context.Context, phasejson.Call) (json.RawMessage, error) {
			return json.RawMessage(`{"output": "seen"}`), nil
		}, nil)
		if sub.Phase().Name() != p.Name() {
			t.Errorf("the subscription is on %s, want %s", sub.Phase().Name(), p.Name())
		}
		if _, err := rt.Install(sub); err != nil {
			t.Errorf("%s: %v", p.Name(), err)
		}
	}
	if _, err := phasejson.New("tool.per"); err == nil || !strings.Contains(err.Error(), `did you mean "tool.pre"?`) {
		t.Errorf("an unknown phase: %v, want a suggestion", err)
	}
}

func wire(t *testing.T, phase string) *phasejson.Phase {
	t.Helper()
	w, err := phasejson.New(phase)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// SPEC C-12
func TestWireHandlersSeeTheInput(t *testing.T) {
	t.Parallel()
	in, err := belay.ToolPre.DecodeInput(hook.Scope{Session: "s", Turn: "t", Step: 3, Agent: "main"},
		[]byte(`{"id": "1", "tool": "write", "input": {"path": "a"}}`))
	if err != nil {
		t.Fatal(err)
	}
	var seen phasejson.Call
	sub := wire(t, "tool.pre").On("outside", func(_ context.Context, call phasejson.Call) (json.RawMessage, error) {
		seen = call
		return json.RawMessage(`{"decision": "ask", "reason": "why not", "context": [{"text": "told"}]}`), nil
	}, nil)
	trial := hooktest.Try(t, belay.ToolPre, sub, in, nil)
	if trial.Output.Decision != belay.ToolAsk || trial.Output.Reason != "why not" || len(trial.Output.Context) != 1 {
		t.Errorf("output = %+v, want what the handler answered", trial.Output)
	}
	if want := (hook.Scope{Session: "s", Turn: "t", Step: 3, Agent: "main"}); seen.Scope != want {
		t.Errorf("scope = %+v, want %+v", seen.Scope, want)
	}
	if got, want := string(seen.Input), `{"id":"1","tool":"write","input":{"path":"a"}}`; got != want {
		t.Errorf("input = %s, want %s", got, want)
	}
}

// SPEC C-12
func TestWireAnswersAreReadStrictly(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rule, phase, answer, want string }{
		{"nothing is no opinion", "tool.pre", ``, ""},
		{"an empty object is no opinion", "tool.pre", `{}`, ""},
		{"a whole answer", "tool.pre", `{"decision": "deny", "reason": "no", "output": "x", "audit": [{"code": "c"}], "input": {"a": null}}`, ""},
		{"an unknown key has a suggestion", "tool.pre", `{"decisio": "deny"}`, `/decisio: this property does not exist (did you mean "decision"?)`},
		{"a key given twice", "tool.pre", `{"decision": "deny", "decision": "pass"}`, `the key "decision" occurs twice`},
		{"a key in two spellings", "tool.pre", `{"decision": "deny", "Decision": "pass"}`, `occurs twice`},
		{"null", "tool.pre", `{"reason": null}`, "/reason"},
		{"null for a rewriting", "tool.pre", `{"input": null}`, "/input"},
		{"a wrong type", "tool.pre", `{"reason": 7}`, "/reason"},
		{"an unknown word", "tool.pre", `{"decision": "allow"}`, "/decision"},
		{"a nested unknown key", "tool.pre", `{"context": [{"txt": "a"}]}`, "/context/0/t"},
		{"what the runtime fills in", "tool.pre", `{"context": [{"text": "a", "from": "me"}]}`, "/context/0/from"},
		{"an answer of another phase", "tool.pre", `{"sections": []}`, "/sections"},
		{"no object", "tool.pre", `[]`, "must be a JSON object"},
		{"two objects", "tool.pre", `{} {}`, "not JSON"},
		{"no context at an observe phase", "model.post", `{"context": []}`, "/context"},
		{"sections", "turn.pre_prompt_compile", `{"sections": [{"id": "a", "body": "b"}]}`, ""},
		{"a job without its key", "turn.post_turn", `{"jobs": [{"handler": "x"}]}`, "/jobs/0/key"},
	} {
		err := wire(t, test.phase).CheckAnswer(json.RawMessage(test.answer))
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %s: err = %v, want %q", test.rule, test.answer, err, test.want)
		}
	}
}

// SPEC C-12, H-10
func TestWireFailures(t *testing.T) {
	t.Parallel()
	in := hooktest.Input(t, belay.ToolPre, `{"id": "1", "tool": "write", "input": {}}`)
	try := func(answer string, err error, opts *hook.Options) *hooktest.Trial[belay.ToolCall, belay.ToolVerdict] {
		sub := wire(t, "tool.pre").On("outside", func(context.Context, phasejson.Call) (json.RawMessage, error) {
			return json.RawMessage(answer), err
		}, opts)
		return hooktest.Try(t, belay.ToolPre, sub, in, nil)
	}
	if trial := try(`{"decision": "no"}`, nil, nil); trial.Output.Decision != belay.ToolDeny || trial.Diagnostics[0].Code != codes.OutputInvalid {
		t.Errorf("an answer that does not fit: %v, want a denial with hook.output_invalid", trial)
	}
	if trial := try(``, errors.New("broken"), nil); trial.Output.Decision != belay.ToolDeny || trial.Diagnostics[0].Code != codes.Error {
		t.Errorf("a handler that fails: %v, want a denial", trial)
	}
	fallback, err := wire(t, "tool.pre").Fallback(json.RawMessage(`{"decision": "ask", "reason": "the check is broken"}`))
	if err != nil {
		t.Fatal(err)
	}
	if trial := try(``, errors.New("broken"), &hook.Options{Failure: fallback}); trial.Output.Decision != belay.ToolAsk {
		t.Errorf("a handler with a fallback: %v, want its answer", trial)
	}
	if _, err := wire(t, "tool.pre").Fallback(json.RawMessage(`{"decisio": "ask"}`)); err == nil {
		t.Error("a fallback that does not fit: want an error")
	}
	rt, err := hook.NewRuntime(belay.Phases(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Install(wire(t, "tool.pre").On("outside", nil, nil)); err == nil {
		t.Error("no handler: want it refused")
	}
}

// Reading a single field of an input gives the same value as reading the whole input.
//
// SPEC C-12
func TestWireFieldsAreThoseOfTheInput(t *testing.T) {
	t.Parallel()
	w := wire(t, "tool.post")
	in := hooktest.Input(t, belay.ToolPost, `{"id": "1", "tool": "write", "input": {"a": [1]}, "text": "done", "is_error": true, "class": "failed",
		"latency_ns": 7, "context": [{"text": "fact"}], "policy": {"k": 1}}`)
	for name, want := range map[string]any{
		"id": "1", "tool": "write", "input": json.RawMessage(`{"a":[1]}`), "text": "done", "is_error": true, "class": "failed",
		"latency_ns": int64(7), "context": json.RawMessage(`[{"text":"fact"}]`), "policy": json.RawMessage(`{"k":1}`),
	} {
		got, ok := w.Field(in, name)
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("field %s (-want +got):\n%s", name, diff)
		}
	}
	in = hooktest.Input(t, belay.ToolPost, `{"id": "", "tool": "write", "input": {}, "text": ""}`)
	for name, want := range map[string]bool{"id": true, "text": true, "class": false, "context": false, "none": false} {
		if _, ok := w.Field(in, name); ok != want {
			t.Errorf("field %s: %t, want %t", name, ok, want)
		}
	}
	for _, p := range belay.Phases() {
		schema := resolveSchema(t, schemaOf(t, p).Input).Schema()
		in, _ := p.Types()
		for _, name := range schema.Required {
			if _, known := wire(t, p.Name()).Field(reflect.Zero(in).Interface(), name); !known {
				t.Errorf("%s: the field %s is not found", p.Name(), name)
			}
		}
	}
	prompt, err := belay.UserPromptSubmit.DecodeInput(hook.Scope{}, []byte(`{"text": "a", "original": "typed"}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := wire(t, "user.prompt.submit").Field(prompt, "original"); got != "typed" {
		t.Errorf("original = %v, want what was typed", got)
	}
}
