package assembly_test

import (
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/subagent"
)

// An agent with hooks is not used where Belay reads no hooks, in whichever form the hooks
// are written: one of them may be a gate.
//
// SPEC W-03
func TestHooksOfAnAgentThatNobodyReads(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ hooks, want string }{
		"none":                       {"", ""},
		"an empty list":              {"hooks: []\n", ""},
		"a list":                     {"hooks:\n  - {id: a, phase: tool.pre, action: deny}\n  - {id: b, phase: tool.pre, action: deny}\n", "2 hooks of agent"},
		"a mapping from phases":      {"hooks:\n  tool.pre:\n    - {id: a, action: deny}\n  tool.post:\n    - {id: b, action: deny}\n", "2 hooks of agent"},
		"a mapping with single hook": {"hooks:\n  tool.pre: {id: a, action: deny}\n", "1 hook of agent"},
		"a mapping from buckets":     {"hooks:\n  onToolCall:\n    - {id: a, action: deny}\n", "1 hook of agent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, problems := subagent.Parse("a.md", []byte("---\nname: a\ndescription: Works.\n"+test.hooks+"---\nWork.\n"))
			if found == nil || len(problems) > 0 {
				t.Fatalf("the file is read as %+v with %v", found, problems)
			}
			switch got := assembly.HooksUnread(found); {
			case (got == nil) != (test.want == ""):
				t.Errorf("the problem is %v, want %q", got, test.want)
			case got != nil && !strings.Contains(got.Message, test.want):
				t.Errorf("the problem is %q, want %q", got.Message, test.want)
			}
		})
	}
}
