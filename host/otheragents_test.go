package host_test

import (
	"strings"
	"testing"

	"github.com/belay-run/belay/provider/scripted"
)

// The instructions of AGENTS.md and CLAUDE.md reach the prompt. Those of a directory below
// the project reach the model when it first uses a file there.
//
// SPEC B-04
func TestInstructionsOfOtherAgentsReachTheModel(t *testing.T) {
	t.Parallel()
	read := scripted.Call{Tool: "read", Input: `{"path": "sub/a.txt"}`}
	opts := options(t, map[string]string{
		"belay.yaml":    "instructions: You tidy up.\n",
		"AGENTS.md":     "Use tabs. See @docs/style.md",
		"docs/style.md": "No trailing spaces.",
		"sub/AGENTS.md": "Only in sub.",
		"sub/a.txt":     "text\n",
	}, scripted.Step{
		Expect: &scripted.Expect{System: "No trailing spaces."},
		Calls:  []scripted.Call{read},
	}, scripted.Step{
		Expect: &scripted.Expect{Results: []scripted.Result{{Text: "Only in sub."}}},
		Calls:  []scripted.Call{read},
	}, scripted.Step{Text: "done"})
	h := open(t, opts)
	take(t, h, "")
	requests := opts.Model.(*scripted.Model).Requests() //nolint:forcetypeassert // see options
	told := 0
	for _, m := range requests[len(requests)-1].Messages {
		for _, p := range m.Parts {
			if p.Result != nil && strings.Contains(p.Result.Text, "Only in sub.") {
				told++
			}
		}
	}
	if told != 1 {
		t.Errorf("the model was told %d times about sub/AGENTS.md, want once", told)
	}
}
