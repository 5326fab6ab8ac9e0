package claude_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/dialect/claude"
)

// SPEC B-04
func TestAgentsWithStrangeFrontmatterLoad(t *testing.T) {
	t.Parallel()
	for rule, test := range map[string]struct {
		text    string
		name    string
		tools   []string
		without []string
		mode    string
		note    string
		problem string
	}{
		"keys that only show something":         {text: "---\nname: a\ncolor: red\ndisplayName: A\ncategory: x\n---\nYou.", name: "a"},
		"an unknown key":                        {text: "---\nname: a\nwhatever: x\n---\nYou.", name: "a", note: "whatever: Belay ignores these keys"},
		"an unquoted colon":                     {text: "---\nname: a\ndescription: Use this: when \"x\": y\n---\nYou.", name: "a", note: "not quoted"},
		"frontmatter that is no YAML":           {text: "---\nname: a\ndescription: Use <example> user: \"hi\" \\n assistant: {x\n\t- [y: z\n\"q\ntools: Read, Bash\n---\nYou.", name: "a", tools: []string{"Read", "Bash"}, note: "read line by line"},
		"a list of tools":                       {text: "---\nname: a\ntools:\n  - Read\n  - Bash(git log:*)\n---\nYou.", name: "a", tools: []string{"Read", "Bash(git log:*)"}},
		"another name for the tools":            {text: "---\nname: a\nallowedTools: Read\n---\nYou.", name: "a", tools: []string{"Read"}},
		"two lists of tools":                    {text: "---\nname: a\ntools: Read, Bash\nallowedTools: Read, Write\n---\nYou.", name: "a", tools: []string{"Read"}},
		"all tools":                             {text: "---\nname: a\ntools: \"*\"\n---\nYou.", name: "a"},
		"no tools":                              {text: "---\nname: a\ntools: []\n---\nYou.", name: "a", tools: []string{}},
		"a key tools without a value means all": {text: "---\nname: a\ntools:\n---\nYou.", name: "a"},
		"tools that the agent must not have":    {text: "---\nname: a\ndisallowedTools: Bash, Write\n---\nYou.", name: "a", without: []string{"Bash", "Write"}},
		"a mode that plans":                     {text: "---\nname: a\npermissionMode: plan\n---\nYou.", name: "a", mode: "read-only", note: "permissionMode: plan"},
		"a mode that allows all":                {text: "---\nname: a\npermissionMode: bypassPermissions\n---\nYou.", name: "a", note: "has no effect"},
		"a mode of Belay":                       {text: "---\nname: a\nmode: read-only\n---\nYou.", name: "a", mode: "read-only"},
		"a name with spaces":                    {text: "---\nname: Code Reviewer!\n---\nYou.", name: "Code-Reviewer", note: `the name "Code Reviewer!" is Code-Reviewer in Belay`},
		"no name":                               {text: "---\ndescription: x\n---\nYou.", name: "file"},
		"a budget with a mistake":               {text: "---\nname: a\nbudget: {turn_tokens: many}\n---\nYou.", problem: "budget: turn_tokens"},
		"no frontmatter":                        {text: "# Read me\n", problem: "it is no agent"},
		"unclosed frontmatter":                  {text: "---\nname: a\n", problem: "never closed"},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			a, problem := claude.ParseAgent("agents/file.md", test.text, "")
			if test.problem != "" {
				if problem == nil || !strings.Contains(problem.Message, test.problem) {
					t.Errorf("the problem is %v, want %q", problem, test.problem)
				}
				return
			}
			if problem != nil {
				t.Fatal(problem)
			}
			if a.Name != test.name || !slices.Equal(a.Tools, test.tools) || (a.Tools == nil) != (test.tools == nil) || !slices.Equal(a.Without, test.without) || a.Mode != test.mode || a.Prompt != "You." {
				t.Errorf("the agent is %+v", a)
			}
			if notes := strings.Join(a.Notes, "; "); !strings.Contains(notes, test.note) || test.note == "" && notes != "" {
				t.Errorf("the notes are %q, want %q", notes, test.note)
			}
		})
	}
}
