package host_test

import (
	"os"
	"path/filepath"
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

// A command of Claude Code is typed as /name. Its shell commands run as if the model had
// called the shell. Those of a project do not run before trust.
//
// SPEC B-04
func TestCommandsOfOtherAgentsAreTyped(t *testing.T) {
	t.Parallel()
	opts := options(t, map[string]string{
		"home/.claude/commands/fix.md": "---\ndescription: Fix it\nargument-hint: [n]\n---\nFix $1. See @notes.txt\n!`echo ran-$1`\n!`rm -rf /`\n",
		".claude/commands/git/push.md": "Push $ARGUMENTS: !`touch made.txt`\n",
		".claude/skills/tidy/SKILL.md": "---\nname: tidy\ndescription: Tidy up\n---\nTidy $1 in ${CLAUDE_SKILL_DIR}.\n",
		"notes.txt":                    "the notes\n",
	}, scripted.Step{
		Expect: &scripted.Expect{Tools: []string{"read_skill"}}, Text: "done",
	}, scripted.Step{Text: "done"}, scripted.Step{Text: "done"})
	opts.Environ = []string{"HOME=" + filepath.Join(opts.Dir, "home"), "PATH=" + os.Getenv("PATH")}
	h := open(t, opts)
	agent, err := h.Agent(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for typed, want := range map[string][]string{
		"/fix 12":        {"Fix 12. See notes.txt", "the notes", "ran-12", "[shell rm -rf / failed: "},
		"/git:push main": {"Push main: [The command touch made.txt did not run: its files are not trusted yet: check them, then run `belay trust .claude`"},
		"/tidy src":      {"Tidy src in " + filepath.Join(opts.Dir, ".claude", "skills", "tidy")},
	} {
		if _, err := agent.Session("s").Turn(t.Context(), typed); err != nil {
			t.Fatalf("%s: %v", typed, err)
		}
		requests := opts.Model.(*scripted.Model).Requests() //nolint:forcetypeassert // see options
		var said strings.Builder
		for _, m := range requests[len(requests)-1].Messages {
			for _, p := range m.Parts {
				said.WriteString(p.Text)
			}
		}
		for _, text := range want {
			if !strings.Contains(said.String(), text) {
				t.Errorf("%s: %q is not in:\n%s", typed, text, said.String())
			}
		}
	}
	if _, err := os.Stat(filepath.Join(opts.Dir, "made.txt")); err == nil {
		t.Error("a command of a project ran before trust")
	}
}

// The commands, agents and skills of a plugin have its name as a prefix.
//
// SPEC B-04
func TestPluginsOfOtherAgentsAreUsed(t *testing.T) {
	t.Parallel()
	opts := options(t, map[string]string{
		".claude/settings.json":                  `{"enabledPlugins": {"acme@m": true}, "extraKnownMarketplaces": {"m": {"source": {"source": "directory", "path": "market"}}}}`,
		"market/.claude-plugin/marketplace.json": `{"plugins": [{"name": "acme", "source": "./acme"}]}`,
		"market/acme/commands/go.md":             "Go to $1 with ${CLAUDE_PLUGIN_ROOT}: !`touch made.txt`",
		"market/acme/agents/look.md":             "---\nname: look\ndescription: Looks\n---\nYou look.",
		"market/acme/skills/tidy/SKILL.md":       "---\nname: tidy\ndescription: Tidies\n---\nTidy $ARGUMENTS.",
		"market/acme/.mcp.json":                  `{"s": {"command": "touch", "args": ["started.txt"]}}`,
		".mcp.json":                              `{"t": {"command": "touch", "args": ["started.txt"]}}`,
	}, scripted.Step{Text: "done"})
	h := open(t, opts)
	agent, err := h.Agent(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agent.Session("s").Turn(t.Context(), "/acme:go home /acme:tidy up"); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for _, m := range opts.Model.(*scripted.Model).Requests()[0].Messages { //nolint:forcetypeassert // see options
		for _, p := range m.Parts {
			said.WriteString(p.Text)
		}
	}
	for _, want := range []string{"Go to home with " + filepath.Join(opts.Dir, "market", "acme"), "touch made.txt did not run", "Tidy up."} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q is not in:\n%s", want, said.String())
		}
	}
	if _, err := h.Agent(t.Context(), "acme-look"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"made.txt", "started.txt"} {
		if _, err := os.Stat(filepath.Join(opts.Dir, name)); err == nil {
			t.Errorf("%s exists: something ran before trust", name)
		}
	}
}
