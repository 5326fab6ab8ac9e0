package looptest_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// labelKeys maps labels to keys of the input, for labels whose name differs from the key.
var labelKeys = map[string]string{"subagent": "name"}

// Every phase has the label agent. Each label has the value of its key in the input.
//
// SPEC H-02
func TestLabelsMatchTheInput(t *testing.T) {
	t.Parallel()
	for _, p := range everyPhase() {
		if !slices.Contains(p.Info().Labels, "agent") {
			t.Errorf("%s has no label agent", p.Name())
		}
		in := fullInput(t, p)
		keys := decode(t, encode(t, in)).(map[string]any)
		for _, label := range p.Info().Labels {
			key := labelKeys[label]
			if key == "" {
				key = label
			}
			value := fmt.Sprint(keys[key])
			if label == "agent" {
				value = testScope.Agent
			}
			for pattern, want := range map[string]bool{value: true, value[:1] + "*": true, "*": true, value + "x": false} {
				asked := false
				sub := p.on("look", func(context.Context, any) (any, error) { asked = true; return nil, nil },
					&hook.Options{Match: hook.Match{Labels: map[string][]string{label: {pattern}}}})
				if _, err := p.dispatch(t.Context(), snapshotOf(t, nil, sub), in); err != nil {
					t.Fatal(err)
				}
				if asked != want {
					t.Errorf("%s: %s is %q, and the pattern %q matches: %t", p.Name(), label, value, pattern, asked)
				}
			}
		}
	}
}

// SPEC H-02
func TestToolsAndAgentsMatchByName(t *testing.T) {
	t.Parallel()
	call := inputOf(t, belay.ToolPre, writeCall)
	for _, test := range []struct {
		rule  string
		match hook.Match
		want  bool
	}{
		{"by the tool's name", hook.Match{Tools: []string{"read", "write"}}, true},
		{"not by another", hook.Match{Tools: []string{"read"}}, false},
		{"by the agent's name", hook.Match{Agents: []string{"main"}}, true},
		{"not by another agent's", hook.Match{Agents: []string{"child"}}, false},
		{"only if both match", hook.Match{Tools: []string{"write"}, Agents: []string{"child"}}, false},
		{"by a condition on the input", hook.Match{When: hook.When("path is a", func(c belay.ToolCall) bool {
			var in struct{ Path string }
			return c.Decode(&in) == nil && in.Path == "a"
		})}, true},
	} {
		outcome := dispatch(t, belay.ToolPre, call, belay.ToolPre.On("deny", answering(belay.ToolPre, belay.Deny("no")), &hook.Options{Match: test.match}))
		if got := outcome.Output.Decision == belay.ToolDeny; got != test.want {
			t.Errorf("%s: matched %t", test.rule, got)
		}
	}
}
