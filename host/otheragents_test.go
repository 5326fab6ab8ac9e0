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

// A deny rule of Claude Code holds. The limit in the tools of an agent of Claude Code holds,
// too.
//
// SPEC B-04
func TestPermissionsOfOtherAgentsHold(t *testing.T) {
	t.Parallel()
	shell := func(command string) scripted.Call {
		return scripted.Call{Tool: "shell", Input: `{"command": "` + command + `"}`}
	}
	opts := options(t, map[string]string{
		".claude/settings.json":    `{"permissions": {"deny": ["Bash(touch:*)", "Read(./.env)"]}}`,
		".claude/agents/look.md":   "---\nname: look\ndescription: Looks: at commits\ntools: Bash(git log:*)\nunknown: key\n---\nYou look.\n",
		".claude/agents/deep/b.md": "---\nname: Bad Name\ndescription: x\n---\nYou.\n",
		".env":                     "KEY=1\n",
	}, scripted.Step{
		Calls: []scripted.Call{shell("touch x"), {Tool: "read", Input: `{"path": ".env"}`}},
	}, scripted.Step{
		Expect: &scripted.Expect{Results: []scripted.Result{{Text: "denies Bash(touch:*)", IsError: true}, {Text: ".env", IsError: true}}},
		Text:   "done",
	}, scripted.Step{
		Expect: &scripted.Expect{System: "You look."},
		Calls:  []scripted.Call{shell("git status"), shell("git log -1")},
	}, scripted.Step{
		Expect: &scripted.Expect{Results: []scripted.Result{{Text: "the agent look may use only shell(git log *)", IsError: true}, {Text: "", IsError: true}}},
		Text:   "done",
	})
	h := open(t, opts)
	take(t, h, "")
	take(t, h, "look")
	if _, err := h.Agent(t.Context(), "Bad-Name"); err != nil {
		t.Error(err)
	}
}
