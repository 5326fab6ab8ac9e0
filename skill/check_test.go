package skill_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/belay-run/belay/skill"
)

// SPEC K-07
func TestCheck(t *testing.T) {
	t.Parallel()
	letters := strings.Repeat("a", 64)
	for _, test := range []struct {
		rule   string
		files  map[string]string
		strict []string // violations of the specification
		ours   []string // problems when Belay's own fields are allowed
	}{
		{"the least there must be", map[string]string{"a/SKILL.md": "---\nname: a\ndescription: x\n---\n"}, nil, nil},
		{
			"all that there may be",
			map[string]string{"pdf-2/SKILL.md": md("name: pdf-2", "description: "+strings.Repeat("ö", 1024), "license: MIT", "compatibility: "+strings.Repeat("ö", 500), "metadata:", "  author: x", "  version: '1.0'", "allowed-tools: Bash(git:*) Read")},
			nil, nil,
		},
		{"other files are free", map[string]string{"a/SKILL.md": md("name: a", "description: x"), "a/scripts/x.py": "", "a/references/R.md": "", "a/assets/x.png": "", "a/more.md": "---\nbroken"}, nil, nil},
		{"a name of 64 characters", map[string]string{letters + "/SKILL.md": md("name: "+letters, "description: x")}, nil, nil},
		{"a name of 65 characters", map[string]string{letters + "a/SKILL.md": md("name: "+letters+"a", "description: x")}, []string{letters + "a/SKILL.md:2: the name has 65 characters"}, []string{letters + "a/SKILL.md:2: the name has 65 characters"}},
		same("an upper-case name", "A", md("name: A", "description: x"), "2: the name \"A\" may contain only lower-case letters"),
		same("a hyphen at the end", "a-", md("name: a-", "description: x"), "2: the name \"a-\" may contain only"),
		same("a hyphen at the beginning", "-a", md("name: -a", "description: x"), "2: the name \"-a\" may contain only"),
		same("two hyphens", "a--b", md("name: a--b", "description: x"), "2: the name \"a--b\" may contain only"),
		same("an underscore", "a_b", md("name: a_b", "description: x"), "2: the name \"a_b\" may contain only"),
		same("a letter beyond ASCII", "ä", md("name: ä", "description: x"), "2: the name \"ä\" may contain only"),
		same("a name unlike the directory", "a", md("description: x", "name: b"), "3: the name \"b\" must be the same as the name of the directory, \"a\""),
		same("a name that is a number", "1", md("name: 1", "description: x"), "2: name is a number"),
		same("no name", "a", md("description: x"), "1: the field name is missing"),
		same("an empty name", "a", md("name: ''", "description: x"), "2: the name \"\" must be the same as the name of the directory", "2: the name has 0 characters"),
		same("no description", "a", md("name: a"), "1: the field description is missing"),
		same("an empty description", "a", md("name: a", "description: ' '"), "3: description is empty"),
		same("a description of 1025 characters", "a", md("name: a", "description: "+strings.Repeat("x", 1025)), "3: description has 1025 characters"),
		same("a description that is a list", "a", md("name: a", "description: [x]"), "3: description is a list"),
		same("a compatibility of 501 characters", "a", md("name: a", "description: x", "compatibility: "+strings.Repeat("x", 501)), "4: compatibility has 501 characters"),
		same("an empty compatibility", "a", md("name: a", "description: x", "compatibility: ''"), "4: compatibility is empty"),
		same("metadata that is no mapping", "a", md("name: a", "description: x", "metadata: x"), "4: metadata is a text"),
		same("metadata that is no text", "a", md("name: a", "description: x", "metadata:", "  version: 1.0", "  tags: [a]"), "5: metadata: version is a number", "6: metadata: tags is a list"),
		same("a license that is a mapping", "a", md("name: a", "description: x", "license: {a: b}"), "4: license is a mapping"),
		same("a field of a vendor", "a", md("name: a", "description: x", "version: '1'"), "4: the field \"version\" is not part of the specification"),
		same("a field that is misspelt", "a", md("name: a", "description: x", "licence: MIT"), "4: the field \"licence\" is not part of the specification (did you mean \"license\"?)"),
		same("no frontmatter", "a", "# A\n", "1: there is no frontmatter"),
		same("frontmatter that is never closed", "a", "---\nname: a\n", "1: the frontmatter that begins here is never closed"),
		same("a key given twice", "a", "---\nname: a\nname: b\n---\n", "3: the key \"name\" occurs twice"),
		same("what loading tolerates", "a", "\ufeff---\nname: a\ndescription: b: c\n---\n", "1: the file begins with a byte order mark", "3: a value with a colon in it is not quoted"),
		{
			"our own fields",
			map[string]string{"a/SKILL.md": md("name: a", "description: x", "id: b", "priority: 1", "hidden: true", "tags: [x]", "agents: [main]", "triggers: [x]")},
			[]string{
				"a/SKILL.md:4: the field \"id\" is an addition", "a/SKILL.md:5: the field \"priority\"", "a/SKILL.md:6: the field \"hidden\"", "a/SKILL.md:7: the field \"tags\"", "a/SKILL.md:8: the field \"agents\"", "a/SKILL.md:9: the field \"triggers\"",
			},
			nil,
		},
		{
			"our own fields, wrong",
			map[string]string{"a/SKILL.md": md("name: a", "description: x", "priority: high", "hidden: perhaps", "triggers:", "  - type: regex", "    pattern: .*") + "{{ language }}\n{{langage}}\n"},
			[]string{"a/SKILL.md:4: the field \"priority\"", "a/SKILL.md:5: the field \"hidden\"", "a/SKILL.md:6: the field \"triggers\""},
			[]string{"a/SKILL.md:12: there is no variable {{langage}} (did you mean \"language\"?)", "a/SKILL.md:4: priority is not a whole number", "a/SKILL.md:5: hidden is neither true nor false", "a/SKILL.md:8: the trigger \".*\" matches every task"},
		},
		{"a body without triggers is no template", map[string]string{"a/SKILL.md": md("name: a", "description: x") + "{{anything}}\n"}, nil, nil},
		{
			"tools as a list",
			map[string]string{"a/SKILL.md": md("name: a", "description: x", "allowed-tools: [Read]")},
			[]string{"a/SKILL.md:4: allowed-tools is a list"},
			nil,
		},
		{
			"flat skills",
			map[string]string{"flat.md": "Be brief.", "yaml.yaml": "description: x\nbody: x\n", "bad.yaml": "name: x\n", "README.md": "# x"},
			[]string{"bad.yaml:1: a skill is a directory", "flat.md:1: a skill is a directory", "yaml.yaml:1: a skill is a directory"},
			[]string{"bad.yaml:1: there is no body"},
		},
		{"a file with another name", map[string]string{"a/Skill.md": md("name: a", "description: x")}, []string{"a/Skill.md:1: the file is called Skill.md"}, []string{"a/Skill.md:1: the file is called Skill.md"}},
		{"skills in directories of skills", map[string]string{"group/a/SKILL.md": md("name: b", "description: x")}, []string{"group/a/SKILL.md:2: the name \"b\""}, []string{"group/a/SKILL.md:2: the name \"b\""}},
		{"a SKILL.md that is a directory", map[string]string{"a/SKILL.md/x": ""}, []string{"a/SKILL.md:1: it is a directory"}, []string{"a/SKILL.md:1: it is a directory"}},
		{"nothing", map[string]string{"x.txt": ""}, []string{"DIR: there is no skill here"}, []string{"DIR: there is no skill here"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS != "linux" && test.rule == "a file with another name" {
				t.Skip("the file system may not tell the names apart")
			}
			dir := write(t, test.files)
			for strict, want := range map[bool][]string{true: test.strict, false: test.ours} {
				problems, err := skill.Check(dir, strict)
				if err != nil {
					t.Fatal(err)
				}
				for i := range problems {
					if problems[i].Path == dir {
						problems[i].Path = "DIR"
					}
				}
				wants(t, fmt.Sprintf("strict %t", strict), told(dir, problems), want)
			}
		})
	}
}

// same returns a test case in which strict and non-strict checks find the same
// violations.
func same(rule, dir, text string, lines ...string) struct {
	rule   string
	files  map[string]string
	strict []string
	ours   []string
} {
	var want []string
	for _, line := range lines {
		want = append(want, dir+"/SKILL.md:"+line)
	}
	return struct {
		rule   string
		files  map[string]string
		strict []string
		ours   []string
	}{rule, map[string]string{dir + "/SKILL.md": text}, want, want}
}

// SPEC K-07
func TestCheckOneSkill(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"one/SKILL.md": md("name: two", "description: x"), "one/flat.md": "no skill"})
	problems, err := skill.Check(filepath.Join(dir, "one"), true)
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "problems", told(dir, problems), []string{"one/SKILL.md:2: the name \"two\" must be the same as the name of the directory, \"one\""})
	if _, err := skill.Check(filepath.Join(dir, "none"), true); !os.IsNotExist(underlying(err)) {
		t.Errorf("error = %v, want that it does not exist", err)
	}
}

// underlying returns the innermost error.
func underlying(err error) error {
	for {
		inner, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		err = inner.Unwrap()
	}
}

// Published skills load. They have different layouts, long descriptions, quoted and
// folded values, and fields of vendors.
//
// SPEC K-06, K-07
func TestPublicLayoutsLoad(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"document-skills/pdf/SKILL.md":              "---\nname: pdf\ndescription: Comprehensive PDF manipulation toolkit for extracting text and tables, creating new PDFs, merging/splitting documents, and handling forms. When Claude needs to fill in a PDF form or programmatically process, generate, or analyze PDF documents at scale.\nlicense: Proprietary. LICENSE.txt has complete terms\n---\n\n# PDF Processing Guide\n\n{{ not_a_variable }}\n",
		"document-skills/pdf/forms.md":              "# Forms\n",
		"document-skills/pdf/scripts/fill.py":       "",
		"document-skills/pdf/LICENSE.txt":           "",
		"skill-creator/SKILL.md":                    "---\nname: skill-creator\ndescription: |\n  Guide for creating skills.\n  Use when: users want to create one.\nlicense: 'Complete terms in LICENSE.txt'\n---\n# Skill Creator\n",
		"skill-creator/references/workflows.md":     "",
		"skill-creator/assets/template/example.txt": "",
		"commit-helper/SKILL.md":                    "---\nname: commit-helper\ndescription: \"Writes commit messages: short, imperative.\"\nversion: 1.2.0\nmodel: sonnet\nuser-invocable: true\nargument-hint: [scope]\nallowed-tools:\n  - Bash(git diff:*)\n  - Read\n---\nRun `git diff`.\n",
		"agent-browser/SKILL.md":                    "---\nname: agent-browser\ndescription: Browser automation CLI. Use when the user asks to: open pages, fill forms, take screenshots.\nmetadata:\n  openclaw:\n    requires: {bins: [node]}\n  author: someone\nallowed-tools: Bash(npx agent-browser:*), Bash(agent-browser:*)\n---\n\nText\n",
		"Obsidian Notes/SKILL.md":                   "---\nname: obsidian-notes\ndescription: >-\n  Works with notes.\n\n  And more.\ntags: [notes, \"second brain\"]\n---\r\nText\r\n",
		"windows/SKILL.md":                          "---\r\nname: windows\r\ndescription: Written elsewhere\r\n---\r\n\r\nText\r\n",
		"README.md":                                 "# A collection\n",
		".claude-plugin/marketplace.json":           "{}",
	})
	catalog := skill.NewCatalog(t.Context(), skill.Dir(dir))
	for _, p := range catalog.Problems() {
		if p.Kind == skill.NotLoaded {
			t.Errorf("not loaded: %v", &p)
		}
	}
	want := map[string]string{
		"pdf": "Comprehensive PDF", "skill-creator": "Guide for creating skills.\nUse when: users", "commit-helper": "Writes commit messages: short", "agent-browser": "Browser automation CLI. Use when the user asks to: open",
		"obsidian-notes": "Works with notes.\nAnd more.", "windows": "Written elsewhere",
	}
	if got := len(catalog.List()); got != len(want) {
		t.Errorf("%d skills are loaded, want %d: %q", got, len(want), names(catalog.List()))
	}
	for name, description := range want {
		s, ok := catalog.Lookup(name)
		if !ok || !strings.HasPrefix(s.Description, description) {
			t.Errorf("%s: %+v, want a description %q", name, s, description)
			continue
		}
		if r, err := catalog.Read(t.Context(), name, ""); err != nil || r.Text == "" {
			t.Errorf("%s: %q, %v", name, r.Text, err)
		}
	}
	if s, _ := catalog.Lookup("agent-browser"); s == nil || len(s.AllowedTools) != 2 || s.AllowedTools[0] != "Bash(npx agent-browser:*)" {
		t.Errorf("the tools of agent-browser: %+v", s)
	}
}
