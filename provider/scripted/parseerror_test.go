package scripted_test

import (
	"strings"
	"testing"

	"github.com/belay-run/belay/provider/scripted"
)

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule   string
		script string
		want   string
	}{
		{"an empty file", "", `s.yaml:1: the script is empty: it needs the key "steps"`},
		{"a file of comments", "# nothing\n", `s.yaml:1: the script is empty`},
		{"no steps", "name: x\n", `s.yaml:1: the script must have the key "steps"`},
		{"an empty list of steps", "name: x\nsteps: []\n", `s.yaml:1: the script has no steps`},
		{"a list in place of a script", "- text: hi\n", `s.yaml:1: the script must be a mapping`},
		{"two documents", "steps: [{}]\n---\nsteps: [{}]\n", `s.yaml:3: a second YAML document begins here`},
		{"bad syntax", "steps:\n  - text: 'hi\n", `s.yaml:2: `},
		{"an unknown key of the script", "nam: x\nsteps: [{}]\n", `s.yaml:1: unknown key "nam" (did you mean "name"?)`},
		{"an unknown key of a step", "steps:\n  - text: hi\n    cals: []\n", `s.yaml:3: unknown key "cals" (did you mean "calls"?)`},
		{"an unknown key of a call", "steps:\n- calls:\n  - tol: read\n    tool: read\n", `s.yaml:3: unknown key "tol" (did you mean "tool"?)`},
		{"an unknown key of a price", "price: {cache_reed: 1}\nsteps: [{}]\n", `s.yaml:1: unknown key "cache_reed" (did you mean "cache_read"?)`},
		{"an unknown key like no other", "steps:\n- pace: {velocity: 3}\n", `s.yaml:2: unknown key "velocity": use one of delay, pause, chunk`},
		{"what only Go can say", "steps: [{compute: x}]\n", `s.yaml:1: unknown key "compute"`},
		{"a key twice", "steps:\n- text: a\n  text: b\n", `s.yaml:3: `},
		{"a call without a tool", "steps:\n- calls:\n  - tool: a\n  - input: {}\n", `s.yaml:4: an entry of calls must have the key "tool"`},
		{"an unknown stop reason", "steps:\n- stop: end\n", `s.yaml:2: unknown stop "end" (did you mean "end_turn"?)`},
		{"a mistyped stop reason", "steps:\n- stop: endturn\n", `s.yaml:2: unknown stop "endturn" (did you mean "end_turn"?)`},
		{"an unknown kind of fault", "steps:\n- fault:\n    kind: ratelimited\n", `s.yaml:3: unknown kind "ratelimited" (did you mean "rate_limited"?)`},
		{"a time without a unit", "steps:\n- pace: {delay: 5}\n", `s.yaml:2: delay must be a duration with a unit, such as 300ms or 2s, not 5`},
		{"a negative time", "steps:\n- pace: {pause: -5s}\n", `s.yaml:2: pause must be a duration with a unit`},
		{"a text for a number", "steps: [{}]\nwindow: big\n", `s.yaml:2: window must be a whole number, not big`},
		{"a fraction for a number", "steps: [{}]\nwindow: 1.5\n", `s.yaml:2: window must be a whole number, not 1.5`},
		{"a text for a price", "steps: [{}]\nprice: {in: much}\n", `s.yaml:2: in must be a number, not much`},
		{"a text for a switch", "steps: [{}]\nrepeat: always\n", `s.yaml:2: repeat must be true or false, not always`},
		{"a number for a text", "steps:\n- text: 5\n", `s.yaml:2: text must be a text: put it in quotes`},
		{"a text for a list", "steps:\n- calls: read\n", `s.yaml:2: calls must be a list`},
		{"a text for a mapping", "steps:\n- pace: fast\n", `s.yaml:2: pace must be a mapping`},
		{"a step that is a text", "steps:\n- hello\n", `s.yaml:2: an entry of steps must be a mapping`},
		{"a list for an input", "steps:\n- calls:\n  - tool: a\n    input: [1]\n", `s.yaml:4: input must be a mapping, or a text that is sent unchanged`},
		{"a key without a value", "steps:\n- text:\n", `s.yaml:2: text has no value`},
		{"two faults in one", "steps:\n- text: a\n- fault: {cut: true, kind: network}\n", `s.yaml:3: step 2: fault: these keys exclude each other`},
		{"several mistakes are all told", "nam: x\nsteps:\n- txt: y\n", "s.yaml:1: unknown key \"nam\" (did you mean \"name\"?)\ns.yaml:3: unknown key \"txt\""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			_, err := scripted.Parse("s.yaml", []byte(test.script))
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("error = %v\nwant    %s", err, test.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("steps: [{text: hi, calls: [{tool: a, input: {b: 1}}]}]")
	f.Add("steps:\n- &a {text: a}\n- {<<: *a}\n- *a\n")
	f.Add("pace: {delay: 1s}\nsteps: [{fault: {kind: network, after: -1}}]")
	f.Fuzz(func(t *testing.T, script string) {
		model, err := scripted.Parse("s.yaml", []byte(script))
		if err != nil && !strings.HasPrefix(err.Error(), "s.yaml:") {
			t.Errorf("error %q does not begin with the file's name", err)
		}
		if err == nil {
			model.Info()
		}
	})
}
