package declare_test

import (
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
		"two rewrites":                  {"      - {tool: write, expect: {input: {}, prompt: x}}", "6: a test expects one of input, prompt, result and answer"},
		"args that are no mapping":      {"      - {tool: write, args: [a], expect: deny}", "6: args is a list"},
		"an input that is no mapping":   {"      - {input: text, expect: deny}", "6: input is a text"},
		"a test that is no mapping":     {"      - write", "6: a test is a text"},
		"tests that are no list":        {"      tool: write", "6: tests is a mapping: write a list of tests, or the name of a file"},
		"an empty list":                 {"      []", "tests is a list: write a list of tests"},
		"a value that is missing":       {"      - {tool: , expect: deny}", "6: tool has no value"},
		"a context that is no text":     {"      - {tool: a, expect: {context: [1]}}", "6: an entry of context is a number"},
		"the second test has the fault": {"      - {tool: a, expect: deny}\n      - {tool: b, expect: no way}", `7: expect: unknown value "no way"`},
	} {
		_, err := declare.Parse("hooks.yaml", []byte(before+c.tests+"\n"))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
	got, err := declare.Parse("hooks.yaml", []byte(before+"      - {name: one, tool: write, args: {path: a}, expect: {decision: deny, reason: r, context: c, input: {path: b}}}\n"))
	if err != nil || len(got) != 1 || len(got[0].Tests) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	test := got[0].Tests[0]
	if test.Name != "one" || test.Line != 6 || string(test.Input) != `{"id":"call-1","input":{"path":"a"},"tool":"write"}` ||
		test.Want.Decision != "deny" || test.Want.Reason != "r" || test.Want.Context[0] != "c" || test.Want.Key != "input" || string(test.Want.Rewrite) != `{"path":"b"}` {
		t.Errorf("the test is %+v", test)
	}
}

// tool and args are short for the input of tool.pre. Other phases have inputs of their own.
func TestTestsOfOtherPhases(t *testing.T) {
	t.Parallel()
	_, err := declare.Parse("hooks.yaml", []byte("hooks:\n  - id: a\n    phase: turn.stop\n    action: deny\n    tests:\n      - {tool: a, expect: deny}\n"))
	if err == nil || !strings.Contains(err.Error(), "6: tool and args are for tests at tool.pre") {
		t.Error(err)
	}
}
