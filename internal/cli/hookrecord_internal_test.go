package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
)

// A case has the input that the hook saw, or would have seen.
//
// SPEC C-15
func TestRecordCalls(t *testing.T) {
	t.Parallel()
	ran := func(id string, second int) hook.Run {
		at := time.Unix(int64(second), 0)
		return hook.Run{Subscription: id, State: hook.Completed, Dispatch: "1", Scope: hook.Scope{Turn: "turn", Step: 1}, Started: at, Ended: at.Add(time.Millisecond)}
	}
	const sent, rewritten = `{"path":"a"}`, `{"path":"b"}`
	for name, c := range map[string]struct {
		tool      string
		class     belay.ResultClass
		rewriters []string
		runs      []hook.Run
		want      string
	}{
		"a call that ran":                       {want: sent},
		"a call that failed":                    {class: belay.ClassFailed, want: sent},
		"a call that a hook denied":             {class: belay.ClassDenied, want: sent},
		"an aborted call":                       {class: belay.ClassAborted, want: sent},
		"a call with an invalid input":          {class: belay.ClassInvalid, want: string(leftUnreached)},
		"a call of an unknown tool":             {class: belay.ClassNotFound, want: string(leftUnreached)},
		"a call of a tool that is not in scope": {class: belay.ClassScope, want: string(leftUnreached)},
		"a tool that the hook does not match":   {tool: "read", want: string(leftTool)},
		"rewritten before this hook":            {rewriters: []string{"other"}, runs: []hook.Run{ran("other", 1), ran("mine", 2)}, want: rewritten},
		"rewritten after this hook":             {rewriters: []string{"other"}, runs: []hook.Run{ran("mine", 1), ran("other", 2)}, want: sent},
		"rewritten before, and denied":          {class: belay.ClassDenied, rewriters: []string{"other"}, runs: []hook.Run{ran("other", 1), ran("mine", 2)}, want: rewritten},
		"rewritten before and after":            {rewriters: []string{"other", "third"}, runs: []hook.Run{ran("other", 1), ran("mine", 2), ran("third", 3)}, want: string(leftRewritten)},
		"rewritten by this hook":                {rewriters: []string{"mine", "other"}, runs: []hook.Run{ran("mine", 1), ran("other", 2)}, want: sent},
		"rewritten by an interceptor":           {rewriters: []string{"interceptor"}, runs: []hook.Run{ran("mine", 1)}, want: rewritten},
		"rewritten, without records":            {rewriters: []string{"other"}, want: string(leftRewritten)},
		"rewritten before this hook was there":  {rewriters: []string{"other"}, runs: []hook.Run{ran("other", 1)}, want: string(leftRewritten)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := &belay.CallPart{ID: "call", Tool: cmp.Or(c.tool, "write"), Input: []byte(sent), RewrittenBy: c.rewriters}
			if c.rewriters != nil {
				call.Final = []byte(rewritten)
			}
			p := &past{runs: c.runs, messages: []*belay.Message{
				{Seq: 1, Turn: "turn", Step: 1, Kind: belay.KindAssistant, Parts: []belay.Part{{Call: call}}},
				{Seq: 2, Turn: "turn", Step: 1, Kind: belay.KindResults, Parts: []belay.Part{{Result: &belay.ResultPart{Call: "call", Tool: "write", Result: belay.Result{IsError: c.class != "", Class: c.class}}}}},
			}}
			var got []string
			recordCalls(p, &recordedHook{"mine", [][]string{{"wr*"}}}, func(r recordedCase) { got = append(got, encoded(r.input)) }, func(why leftOut) { got = append(got, string(why)) })
			if !slices.Equal(got, []string{c.want}) {
				t.Errorf("the cases are %q, want %q", got, c.want)
			}
		})
	}
}

// fakeRecording records tests of a hook at a phase that denies inputs with the word prod, and fails
// for those with the word broken.
func fakeRecording(t *testing.T, phase string) *recording {
	t.Helper()
	hooks, err := declare.Parse("hooks.yaml", []byte("hooks: [{id: a, phase: "+phase+", run: cat}]"))
	if err != nil {
		t.Fatal(err)
	}
	r := &recording{known: make(map[string]bool), names: make(map[string]int), left: make(map[leftOut]int)}
	r.text.WriteString("tests:\n")
	r.read = func(text []byte) ([]declare.Test, error) { return hooks[0].ParseTests("tests.yaml", text) }
	r.ask = func(input json.RawMessage) (*hook.Explained, error) {
		e := &hook.Explained{Asked: true, State: hook.Completed}
		switch text := string(input); {
		case strings.Contains(text, "gone"):
			return nil, errors.New("the hook is gone")
		case strings.Contains(text, "elsewhere"):
			e.Asked = false
		case strings.Contains(text, "broken"):
			e.State = hook.Failed
		case strings.Contains(text, "prod"):
			e.Said = []byte(`{"decision":"deny","reason":"no \"prod\""}`)
		case strings.Contains(text, "TOKEN"):
			e.Said = []byte(`{"decision":"deny","reason":"DB_PASSWORD=secret-value"}`)
		case strings.Contains(text, "digs"):
			e.Said = []byte(`{"input":` + strings.Repeat(`{"in":`, 20) + `1` + strings.Repeat(`}`, 20) + `}`)
		case strings.Contains(text, "moves"):
			e.Said = []byte(`{"input":{"path":"there"}}`)
		}
		return e, nil
	}
	return r
}

// A test expects what the hook answers now. The names of tests differ, and secrets are removed.
//
// SPEC C-15
func TestRecording(t *testing.T) {
	t.Parallel()
	r := fakeRecording(t, "tool.pre")
	for _, c := range []recordedCase{
		{name: "one", tool: "write", input: map[string]any{"path": "a"}},
		{name: "one", tool: "write", input: map[string]any{"path": "prod"}},
		{name: "same", tool: "write", input: map[string]any{"path": "a"}},
		{name: "skipped", tool: "write", input: map[string]any{"path": "elsewhere"}},
		{name: "fails", tool: "write", input: map[string]any{"path": "broken"}},
		{name: "an answer that is too deep", tool: "write", input: map[string]any{"path": "digs"}},
		{name: "moved", tool: "write", input: map[string]any{"path": "moves"}},
		{name: "secret", tool: "write", input: map[string]any{"text": "DB_PASSWORD=secret-value"}},
		{name: "why", tool: "write", input: map[string]any{"path": "TOKEN"}},
		{name: "names", tool: "write", input: map[string]any{"env": map[string]any{"db_password": "secret-value"}, "argv": []any{"deploy", "--token", "secret-value"}}},
		{name: "below", tool: "write", input: map[string]any{"auth": map[string]any{"password": "secret-value", "user": "ann"}}},
		{name: "number", tool: "write", input: map[string]any{"token": json.Number("123"), "db_password": "secret-value", "n": json.Number("1.50")}},
		{name: "list", tool: "write", input: map[string]any{"keys": []any{"a"}, "password": "secret-value\x7f<"}},
		{name: "one name", tool: "write", input: map[string]any{"sk-proj-abcdefgh12345678": 1}},
		{name: "two names", tool: "write", input: map[string]any{"sk-proj-abcdefgh12345678": 1, "sk-proj-ijklmnop12345678": 2}},
		{name: "two fields", tool: "write", input: map[string]any{"in": []any{map[string]any{"sk-proj-abcdefgh12345678": 1, "[REDACTED]": 2}}}},
	} {
		if err := r.add(c); err != nil {
			t.Fatal(err)
		}
	}
	const want = `tests:
  - name: "one"
    tool: "write"
    args: {"path":"a"}
    expect: pass
  - name: "one (2)"
    tool: "write"
    args: {"path":"prod"}
    expect: {decision: deny, reason: "no \"prod\""}
  - name: "skipped"
    tool: "write"
    args: {"path":"elsewhere"}
    expect: skip
  - name: "moved"
    tool: "write"
    args: {"path":"moves"}
    expect: {decision: pass, input: {"path":"there"}}
  - name: "secret"
    # secrets were removed from this input
    tool: "write"
    args: {"text":"DB_PASSWORD=[REDACTED]"}
    expect: pass
  - name: "why"
    tool: "write"
    args: {"path":"TOKEN"}
    expect: deny
  - name: "names"
    # secrets were removed from this input
    tool: "write"
    args: {"argv":["deploy","--token","[REDACTED]"],"env":{"db_password":"[REDACTED]"}}
    expect: pass
  - name: "below"
    # secrets were removed from this input
    tool: "write"
    args: {"auth":{"password":"[REDACTED]","user":"[REDACTED]"}}
    expect: pass
  - name: "number"
    # secrets were removed from this input
    tool: "write"
    args: {"db_password":"[REDACTED]","n":1.50,"token":"[REDACTED]"}
    expect: pass
  - name: "list"
    # secrets were removed from this input
    tool: "write"
    args: {"keys":["[REDACTED]"],"password":"[REDACTED]"}
    expect: pass
  - name: "one name"
    # secrets were removed from this input
    tool: "write"
    args: {"[REDACTED]":1}
    expect: pass
`
	if got := r.text.String(); got != want || r.count != 11 || len(r.left) != 3 || r.left[leftFailed] != 1 || r.left[leftForm] != 1 || r.left[leftNames] != 2 {
		t.Errorf("%d tests:\n%s\nleft out: %v", r.count, got, r.left)
	}
	if err := r.add(recordedCase{name: "gone", tool: "write", input: map[string]any{"path": "gone"}}); err == nil {
		t.Error("an error of the hook's runtime is no error")
	}
}

// Whatever a session has, the file of its tests can be read. What does not fit is left out, and what
// is smaller still gets in.
//
// SPEC C-15
func TestRecordingFits(t *testing.T) {
	t.Parallel()
	brackets, long := strings.Repeat("[]{}&*!?-\n", 400), strings.Repeat("0123456789abcdef", 1200)
	nested := any("deep")
	for range 20 {
		nested = map[string]any{"in": nested}
	}
	cases := []recordedCase{
		{name: "control", input: map[string]any{"text": "\x7f \x00 \u0085 \u2028 \ufeff \U0001f600 \" \\ / \t <>&"}},
		{name: "too complex", input: map[string]any{"text": strings.Repeat("[", 5000)}},
		{name: "too deep", input: map[string]any{"text": nested}},
		{name: "too long", input: map[string]any{"text": strings.Repeat("x", 70_000)}},
		{name: "other number in YAML", input: map[string]any{"text": json.Number("1e3")}},
		{name: "number", input: map[string]any{"text": json.Number("12345678901234567890.5")}},
	}
	for i := range 3 {
		cases = append(cases,
			recordedCase{name: "long", input: map[string]any{"text": fmt.Sprint(i, long)}},
			recordedCase{name: "brackets", input: map[string]any{"text": fmt.Sprint(i, brackets)}},
			recordedCase{name: "small", input: map[string]any{"text": fmt.Sprint(i)}})
	}
	r := fakeRecording(t, "user.prompt.submit")
	for _, c := range cases {
		if err := r.add(c); err != nil {
			t.Fatal(err)
		}
	}
	tests, err := r.read(r.text.Bytes())
	if err != nil {
		t.Fatalf("the file cannot be read: %v", err)
	}
	var names []string
	for i := range tests {
		names = append(names, tests[i].Name)
		at := slices.IndexFunc(cases, func(c recordedCase) bool { return sameJSON(json.RawMessage(encoded(c.input)), tests[i].Input) })
		if at < 0 {
			t.Errorf("no case has the input of test %q: %.80s", tests[i].Name, tests[i].Input)
		}
	}
	want := []string{"control", "number", "long", "brackets", "small", "long (2)", "small (2)", "long (3)", "small (3)"}
	if !slices.Equal(names, want) || r.left[leftForm] != 4 || r.left[leftFull] != 2 {
		t.Errorf("the tests are %q, left out: %v", names, r.left)
	}
}
