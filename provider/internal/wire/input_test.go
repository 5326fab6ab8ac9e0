package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/belay-run/belay/provider/internal/wire"
)

func TestInputs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ input, want string }{
		{`{"a":1}`, `{"a":1}`},
		{" \n{}", " \n{}"},
		{`{"a":"\ud83d"}`, `{"a":"\ufffd"}`},
		{``, `{}`},
		{`null`, `{}`},
		{`[{}]`, `{}`},
		{`{"a"`, `{}`},
		{`{} {}`, `{}`},
	} {
		if got := string(wire.Object(json.RawMessage(test.input))); got != test.want {
			t.Errorf("Object(%s) = %s, want %s", test.input, got, test.want)
		}
	}
	for _, test := range []struct {
		rule, input     string
		cut             bool
		want, malformed string
	}{
		{"an object is the input", `{"a":1}`, false, `{"a":1}`, ""},
		{"a missing input is empty", ``, false, `{}`, ""},
		{"a missing input at a cut is malformed", ``, true, `{}`, "{"},
		{"half an input is malformed", `{"a`, true, `{}`, `{"a`},
	} {
		call := wire.Call("c", "look", []byte(test.input), test.cut)
		if call.ID != "c" || call.Tool != "look" || string(call.Input) != test.want || call.Malformed != test.malformed {
			t.Errorf("%s: got %+v", test.rule, call)
		}
	}
}
