package declare_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/declare"
)

// Tests of hooks are decoded strictly: a mistake names the line and what to do.
//
// SPEC C-15
func TestTestsAreStrict(t *testing.T) {
	t.Parallel()
	const before = "hooks:\n  - id: a\n    phase: tool.pre\n    action: deny\n    tests:\n"
	for what, c := range map[string]struct{ tests, want string }{
		"an unknown key":                {"      - {tol: write, expect: deny}", `6: unknown key "tol" (did you mean "tool"?)`},
		"no expectation":                {"      - {tool: write}", "6: the test expects nothing"},
		"no input":                      {"      - {expect: deny}", "6: the test has no input"},
		"an input and a tool":           {"      - {tool: write, input: {}, expect: deny}", "6: input is the whole input of the phase"},
		"an unknown decision":           {"      - {tool: write, expect: denied}", `6: expect: unknown value "denied" (did you mean "deny"?)`},
		"an unknown key in expect":      {"      - {tool: write, expect: {reson: x}}", `6: unknown key "reson" (did you mean "reason"?)`},
		"an empty expectation":          {"      - {tool: write, expect: {}}", "6: expect is empty"},
		"two rewrites":                  {"      - {tool: write, expect: {input: {}, result: x}}", "6: a test expects one of input, prompt, result and answer"},
		"args that are no mapping":      {"      - {tool: write, args: [a], expect: deny}", "6: args is a list"},
		"an input that is no mapping":   {"      - {input: text, expect: deny}", "6: input is a text"},
		"a test that is no mapping":     {"      - 7", "6: a test is a number"},
		"tests that are no list":        {"      tool: write", "6: tests is a mapping: write a list of tests, or the name of a file"},
		"no value":                      {"", "tests is nothing: write a list of tests, or the name of a file"},
		"an empty list":                 {"      []", "the list of tests is empty: write a test"},
		"a file of a hook from a text":  {"      - ../tests/a.yaml", "6: tests: ../tests/a.yaml: the hook was not read from a directory"},
		"a decision of another phase":   {"      - {tool: write, expect: continue}", "6: expect: a hook at tool.pre cannot answer continue: write one of pass, ask, deny, halt, skip, fails"},
		"an answer of another phase":    {"      - {tool: write, expect: {prompt: x}}", "6: expect: a hook at tool.pre cannot give prompt"},
		"a value that is missing":       {"      - {tool: , expect: deny}", "6: tool has no value"},
		"a context that is no text":     {"      - {tool: a, expect: {context: [1]}}", "6: an entry of context is a number"},
		"the second test has the fault": {"      - {tool: a, expect: deny}\n      - {tool: b, expect: no way}", `7: expect: unknown value "no way"`},
	} {
		hooks, err := declare.Parse("hooks.yaml", []byte(before+c.tests+"\n"))
		if err != nil || len(hooks) != 1 {
			t.Errorf("%s: a mistake in a test stops the hook: %v", what, err)
			continue
		}
		_, err = hooks[0].Tests()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
	got, err := declare.Parse("hooks.yaml", []byte(before+"      - {name: one, tool: write, args: {path: a}, expect: {decision: deny, reason: r, context: c, input: {path: b}}}\n"))
	if err != nil || len(got) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	tests, err := got[0].Tests()
	if err != nil || len(tests) != 1 {
		t.Fatalf("%+v, %v", tests, err)
	}
	test := tests[0]
	if test.Name != "one" || test.Line != 6 || string(test.Input) != `{"id":"call-1","input":{"path":"a"},"tool":"write"}` ||
		test.Want.Decision != "deny" || test.Want.Reason != "r" || test.Want.Context[0] != "c" || test.Want.Key != "input" || string(test.Want.Rewrite) != `{"path":"b"}` {
		t.Errorf("the test is %+v", test)
	}
}

// tool and args are short for the input of tool.pre. Other phases have inputs of their own.
func TestTestsOfOtherPhases(t *testing.T) {
	t.Parallel()
	for phase, c := range map[string]struct{ test, want string }{
		"turn.stop":          {"{tool: a, expect: continue}", "6: tool and args are for tests at tool.pre"},
		"user.prompt.submit": {"{input: {text: a}, expect: allow}", "6: expect: a hook at user.prompt.submit cannot answer allow: write one of pass, deny, skip, fails"},
		"tool.post":          {"{input: {text: a}, expect: deny}", "6: expect: a hook at tool.post cannot answer deny: write one of pass, skip, fails"},
	} {
		hooks, err := declare.Parse("hooks.yaml", []byte("hooks:\n  - id: a\n    phase: "+phase+"\n    run: cat\n    tests:\n      - "+c.test+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := hooks[0].Tests(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", phase, err, c.want)
		}
	}
	// What a phase can answer is accepted.
	for phase, expect := range map[string]string{
		"approval.request": "allow", "turn.stop": "{decision: continue, reason: r}", "tool.post": "{result: x, context: c}",
		"user.prompt.submit": "{prompt: x, context: c}", "subagent.start": "deny", "session.start": "{context: c}",
	} {
		hooks, err := declare.Parse("hooks.yaml", []byte("hooks:\n  - id: a\n    phase: "+phase+"\n    run: cat\n    tests:\n      - {input: {}, expect: "+expect+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := hooks[0].Tests(); err != nil {
			t.Errorf("%s: %v", phase, err)
		}
	}
}

// Tests are in the list of a hook, in files that it names, or in both. Nothing reads the files
// before Tests does.
//
// SPEC C-15
func TestTestsInFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	file := write("hooks.yaml", "hooks:\n  - id: a\n    phase: tool.pre\n    action: {deny: no}\n    tests: [one.yaml, {name: own, tool: x, expect: deny}, two.yaml]\n")
	hooks, err := declare.Load(dir, file)
	if err != nil || len(hooks) != 1 {
		t.Fatalf("a missing file of tests stops the hook: %v", err)
	}
	if _, err := hooks[0].Tests(); err == nil || !strings.Contains(err.Error(), "hooks.yaml:5: tests: one.yaml: ") {
		t.Errorf("a missing file of tests: %v", err)
	}
	write("one.yaml", "tests: [{name: first, tool: x, expect: deny}]\n")
	write("two.yaml", "tests: [three.yaml]\n")
	if _, err := hooks[0].Tests(); err == nil || !strings.Contains(err.Error(), "two.yaml:1: a test is a text") {
		t.Errorf("a file of tests that names a file: %v", err)
	}
	write("two.yaml", "tests: [{name: last, tool: x, expect: deny}]\n")
	tests, err := hooks[0].Tests()
	if err != nil || len(tests) != 3 || tests[0].Name != "first" || tests[1].Name != "own" || tests[2].Name != "last" {
		t.Errorf("the tests are %+v, %v", tests, err)
	}
}
