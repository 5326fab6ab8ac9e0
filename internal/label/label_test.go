package label_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay/internal/label"
)

// The most important argument comes first, in whatever order the arguments are.
func TestLabel(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, input, of, about string
		rest                   []label.Field
	}{
		{"a path tells more than a text", `{"content":"hello","path":"f.txt"}`, "f.txt", "f.txt", []label.Field{{"content", "hello", true}}},
		{"a command tells more than a path", `{"path":"src","command":"ls"}`, "ls", "ls", []label.Field{{"path", "src", true}}},
		{"a pattern tells where it is looked for", `{"path":"src","pattern":"TODO"}`, "TODO in src", "TODO in src", nil},
		{"unless that is here", `{"pattern":"TODO","path":"."}`, "TODO", "TODO", nil},
		{"a question tells itself", `{"options":["a"],"question":"Where to?"}`, "Where to?", "Where to?", []label.Field{{"options", `["a"]`, false}}},
		{"what is no telling field stays as it is", `{"b":1,"a":{"x":[]}}`, `{"b":1,"a":{"x":[]}}`, "", []label.Field{{"b", "1", false}, {"a", `{"x":[]}`, false}}},
		{"an empty one tells nothing", `{"path":"","name":"x"}`, "x", "x", []label.Field{{"path", "", true}}},
		{"what is no text tells nothing", `{"path":null,"name":"x"}`, "x", "x", []label.Field{{"path", "null", false}}},
		{"the last of two with one key counts", `{"path":"a","path":"b"}`, "b", "b", nil},
		{"nothing is about nothing", `{}`, "", "", nil},
	} {
		fields, ok := label.Fields(json.RawMessage(test.input))
		if !ok {
			t.Errorf("%s: %s is no object", test.rule, test.input)
		}
		about, rest := label.Split(fields)
		if of := label.Of(json.RawMessage(test.input)); of != test.of || about != test.about {
			t.Errorf("%s: it is about %q, and %q of its fields, want %q and %q", test.rule, of, about, test.of, test.about)
		}
		if diff := cmp.Diff(test.rest, rest); diff != "" {
			t.Errorf("%s: the rest (-want +got):\n%s", test.rule, diff)
		}
	}
}

// Input that is not an object is shown unchanged.
func TestLabelOfSomethingElse(t *testing.T) {
	t.Parallel()
	for _, input := range []string{"", "[1,2]", `"text"`, "{", `{"a":`, `{"a":1`, "{1:2}", "{}{}"} {
		if fields, ok := label.Fields(json.RawMessage(input)); ok {
			t.Errorf("%q is an object with %v", input, fields)
		}
		if got := label.Of(json.RawMessage(input)); got != input {
			t.Errorf("%q is about %q, want it as it is", input, got)
		}
	}
}
