package looptest_test

import (
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/hooktest"
)

// A gate must not check one key while the tool uses another. So Decode returns an error
// for an input that can be read in two ways. An error at a gate denies the call.
func TestDecodeRefusesTwoReadings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rule, input, want string }{
		{"one reading is fine", `{"path": "a", "more": [{"path": "b"}, {"path": "c"}]}`, ""},
		{"a key twice", `{"path": "a", "path": "b"}`, `"path" occurs twice`},
		{"a key in another case", `{"path": "a", "PATH": "b"}`, `"PATH" occurs twice`},
		{"a key twice further in", `{"path": "a", "more": [{"x": 1, "x": 2}]}`, `"x" occurs twice`},
		{"no input", `null`, "has no input"},
		{"a wrong type", `{"path": 7}`, "Path"},
	} {
		call := hooktest.Input(t, belay.ToolPre, `{"tool": "write", "input": `+test.input+`}`)
		var in struct{ Path string }
		err := call.Decode(&in)
		switch {
		case test.want == "" && (err != nil || in.Path != "a"):
			t.Errorf("%s: got %+v, %v", test.rule, in, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: got %v, want an error with %q", test.rule, err, test.want)
		}
	}
}
