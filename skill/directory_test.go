package skill_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/belay-run/belay/skill"
)

// SPEC K-06
func TestLoad(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"pdf/SKILL.md":                   "---\nname: pdf\ndescription: >\n  Extracts text,\n  fills forms.\nlicense: \"Apache-2.0\"\ncompatibility: Requires qpdf\nmetadata:\n  author: example\n  version: \"1.0\"\nallowed-tools: Bash(git add:*) Read, Write\n---\n\n# PDF\n",
		"pdf/forms.md":                   "Forms.",
		"pdf/reference.md":               "---\nx: y\n---\nReference.",
		"pdf/LICENSE.txt":                "text",
		"pdf/scripts/fill.py":            "print()",
		"pdf/scripts/lib/deep.py":        "print()",
		"pdf/references/big.md":          "Big.",
		"pdf/assets/form.pdf":            "\xff\xfe",
		"pdf/notes/other.md":             "no resource",
		"plain/SKILL.md":                 "Just a body.\n",
		"nested/deeper/inner/SKILL.md":   md("name: inner", "description: x"),
		"nested/README.md":               "no skill",
		"nested/node_modules/x/SKILL.md": md("name: module"),
		".hidden/SKILL.md":               md("name: dot"),
		"empty/.keep":                    "",
		"ours/SKILL.md":                  md("id: team/ours", "description: x", "priority: 7", "hidden: true", "tags: [a, b]", "agents:", "  - main", "  - reviewer", "triggers:", "  - deploy", "  - type: regex", "    pattern: 'roll\\s+out'"),
		"flat.md":                        md("description: A flat one", "triggers: release"),
		"bare.md":                        "Be brief.\n",
		"README.md":                      "# Skills\n",
		"yaml.yaml":                      "name: from-yaml\ndescription: x\nbody: |\n  Line one.\n  Line two.\n",
		"notes.txt":                      "no skill",
	})
	catalog := skill.NewCatalog(t.Context(), skill.Dir(dir))
	want := []string{"ours", "bare", "flat", "from-yaml", "inner", "pdf", "plain"}
	if got := names(catalog.List()); !slices.Equal(got, want) {
		t.Errorf("skills = %q, want %q", got, want)
	}
	for _, want := range []skill.Skill{
		{
			ID: "pdf", Name: "pdf", Description: "Extracts text, fills forms.", License: "Apache-2.0", Compatibility: "Requires qpdf", Metadata: map[string]string{"author": "example", "version": "1.0"},
			AllowedTools: []string{"Bash(git add:*)", "Read", "Write"}, Path: filepath.Join(dir, "pdf", "SKILL.md"),
		},
		{
			ID: "team/ours", Name: "ours", Description: "x", Priority: 7, Hidden: true, Tags: []string{"a", "b"}, Agents: []string{"main", "reviewer"}, Path: filepath.Join(dir, "ours", "SKILL.md"),
			Triggers: []skill.Trigger{{Type: skill.Keyword, Pattern: "deploy"}, {Type: skill.Regex, Pattern: `roll\s+out`}},
		},
		{ID: "flat", Name: "flat", Description: "A flat one", Path: filepath.Join(dir, "flat.md"), Triggers: []skill.Trigger{{Type: skill.Keyword, Pattern: "release"}}},
		{ID: "from-yaml", Name: "from-yaml", Description: "x", Path: filepath.Join(dir, "yaml.yaml")},
	} {
		got, ok := catalog.Lookup(want.Name)
		if !ok {
			t.Errorf("there is no %q", want.Name)
			continue
		}
		if diff := cmp.Diff(want, *got, cmpopts.IgnoreUnexported(skill.Trigger{}), cmpopts.IgnoreFields(skill.Skill{}, "Tolerated")); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", want.Name, diff)
		}
	}
	wants(t, "problems", told(dir, catalog.Problems()), []string{
		"bare.md:1: there is no description",
		"plain/SKILL.md:1: there is no description",
	})

	for _, test := range []struct {
		rule, name, section string
		want                skill.Reading
	}{
		{"the body, with what comes with it", "pdf", "", skill.Reading{Text: "# PDF"}},
		{"a section", "pdf", "forms", skill.Reading{Text: "Forms."}},
		{"a section as it is", "pdf", "reference", skill.Reading{Text: "---\nx: y\n---\nReference."}},
		{"a resource that is text", "pdf", "references/big.md", skill.Reading{Text: "Big."}},
		{"a body without frontmatter", "plain", "", skill.Reading{Text: "Just a body."}},
		{"a flat file", "flat", "", skill.Reading{Text: "The body."}},
		{"a flat file of YAML", "from-yaml", "", skill.Reading{Text: "Line one.\nLine two.\n"}},
	} {
		got, err := catalog.Read(t.Context(), test.name, test.section)
		if err != nil {
			t.Errorf("%s: %v", test.rule, err)
			continue
		}
		want := test.want
		want.Name, want.Section, want.Path = test.name, test.section, filepath.Join(dir, test.name)
		switch test.name {
		case "pdf":
			want.Sections = []string{"forms", "reference"}
			want.Resources = []string{"assets/form.pdf", "references/big.md", "scripts/fill.py", "scripts/lib/deep.py"}
		case "flat":
			want.Path += ".md"
		case "from-yaml":
			want.Path = filepath.Join(dir, "yaml.yaml")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.rule, diff)
		}
	}
	for _, section := range []string{"../flat", "../x", "forms.md", "LICENSE.txt", "notes/other", "SKILL", "/etc/hosts", "scripts/../../flat.md"} {
		_, err := catalog.Read(t.Context(), "pdf", section)
		if !errors.Is(err, skill.ErrNotFound) || !strings.HasSuffix(err.Error(), "It has: forms, reference") {
			t.Errorf("section %q: error = %v, want one that lists the sections", section, err)
		}
	}
	if _, err := catalog.Read(t.Context(), "pdf", "assets/form.pdf"); err == nil || !strings.Contains(err.Error(), "not UTF-8") {
		t.Errorf("a resource that is no text: error = %v", err)
	}
	if _, err := catalog.Read(t.Context(), "flat", "x"); !errors.Is(err, skill.ErrNotFound) || !strings.Contains(err.Error(), "has no sections") {
		t.Errorf("a section of a flat file: error = %v", err)
	}
}

// SPEC K-06, K-07
func TestLoadTellsWhatItToleratesAndWhatItDoesNot(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"good/SKILL.md":        md("name: good", "description: Is fine"),
		"bom/SKILL.md":         "\ufeff" + md("name: bom", "description: x"),
		"colon/SKILL.md":       md("name: colon", "description: Use when: always"),
		"other/SKILL.md":       md("name: another", "description: x"),
		"long/SKILL.md":        md("name: "+strings.Repeat("l", 65), "description: "+strings.Repeat("d", 1025), "compatibility: "+strings.Repeat("c", 501)),
		"vendor/SKILL.md":      md("name: vendor", "description: x", "version: 1.0", "discription: y", "model: opus"),
		"kinds/SKILL.md":       md("name: kinds", "description: 5", "priority: high", "tags: {a: b}", "metadata: {a: 1, b: [c]}"),
		"spoken name/SKILL.md": md("name: Spoken Name", "description: x"),
		"lower/skill.md":       md("name: lower", "description: x"),
		"broad/SKILL.md":       md("name: broad", "description: x", "triggers:", "  - type: regex", "    pattern: '.*'"),

		"unclosed/SKILL.md": "---\nname: unclosed\n",
		"list/SKILL.md":     "---\n- a\n---\n",
		"tabs/SKILL.md":     "---\nname: tabs\ntags:\n\t- a\n---\n",
		"twice/SKILL.md":    "---\nname: twice\ndescription: x\nname: again\n---\n",
		"huge/SKILL.md":     "---\nname: huge\ndescription: " + strings.Repeat("x", 1<<20-100) + "\n---\n",
		"toolong/SKILL.md":  md("name: toolong") + strings.Repeat("x", 1<<20),
		"bytes/SKILL.md":    "---\nname: bytes\ndescription: \xff\n---\n",
		"bomb/SKILL.md":     "---\na: &a [x, x]\nb: &b [*a, *a]\n---\n",
		"regex/SKILL.md":    md("name: regex", "description: x", "triggers:", "  - ok", "  - type: regex", "    pattern: (a"),
		"ahead/SKILL.md":    md("name: ahead", "description: x", "triggers:", "  - type: regex", "    pattern: a(?=b)"),
		"type/SKILL.md":     md("name: type", "description: x", "triggers:", "  - type: glob", "    pattern: a"),
		"field/SKILL.md":    md("name: field", "description: x", "triggers:", "  - patern: a"),
		"secret/SKILL.md":   md("name: secret", "description: x", "hidden: perhaps"),
		"agents/SKILL.md":   md("name: agents", "description: x", "agents: {a: b}"),
		"tools/SKILL.md":    md("name: tools", "description: x", "allowed-tools: Bash(git"),
		"dir/SKILL.md/x":    "",
		"nobody.yaml":       "name: nobody\n",
		"control/SKILL.md":  md("name: \"a\\nb\"", "description: x"),
		"verylong/SKILL.md": md("name: " + strings.Repeat("n", 300)),
		"badflat.md":        "---\nname: x\n",
	})
	catalog := skill.NewCatalog(t.Context(), skill.Dir(dir))
	var loaded, tolerated []skill.Problem
	for _, p := range catalog.Problems() {
		if p.Kind == skill.NotLoaded {
			loaded = append(loaded, p)
		} else {
			tolerated = append(tolerated, p)
		}
	}
	want := []string{"Spoken Name", "another", "bom", "broad", "colon", "good", "kinds", strings.Repeat("l", 65), "lower", "vendor"}
	if got := names(catalog.List()); !slices.Equal(got, want) {
		t.Errorf("skills = %q, want %q", got, want)
	}
	wants(t, "not loaded", told(dir, loaded), []string{
		"agents/SKILL.md:4: agents is a mapping: write a list of texts",
		"ahead/SKILL.md:6: the expression \"a(?=b)\" cannot be read: invalid or unsupported Perl syntax: (?= (RE2 does not support look-ahead",
		"badflat.md:1: the frontmatter that begins here is never closed",
		"bomb/SKILL.md:2: anchors and aliases",
		"bytes/SKILL.md:3: the file is not UTF-8",
		"control/SKILL.md: skill \"a\\nb\": its name \"a\\nb\" has unprintable characters",
		"dir/SKILL.md:1: it is a directory",
		"field/SKILL.md:5: a trigger has no field \"patern\": it has type and pattern (did you mean \"pattern\"?)",
		"huge/SKILL.md:2: the YAML has",
		"list/SKILL.md:2: the YAML is a list",
		"nobody.yaml:1: there is no body",
		"regex/SKILL.md:7: the expression \"(a\" cannot be read: missing closing )",
		"secret/SKILL.md:4: hidden is neither true nor false",
		"tabs/SKILL.md:4: YAML does not allow tabs",
		"toolong/SKILL.md:1: it is longer than 1048576 bytes",
		"tools/SKILL.md:4: allowed-tools has a parenthesis that is never closed: Bash(git",
		"twice/SKILL.md:4: the key \"name\" occurs twice",
		"type/SKILL.md:6: there is no trigger of type \"glob\"",
		"unclosed/SKILL.md:1: the frontmatter that begins here is never closed",
		"verylong/SKILL.md: skill \"nnn",
	})
	wants(t, "tolerated", told(dir, tolerated), []string{
		"bom/SKILL.md:1: the file begins with a byte order mark",
		"broad/SKILL.md:6: the trigger \".*\" matches every task",
		"colon/SKILL.md:3: a value with a colon in it is not quoted",
		"kinds/SKILL.md:3: description is a number and not a text",
		"kinds/SKILL.md:4: priority is not a whole number",
		"kinds/SKILL.md:5: tags is a mapping",
		"kinds/SKILL.md:6: metadata.a is a number and not a text",
		"kinds/SKILL.md:6: metadata.b is a list and not a text, so Belay ignores it",
		"long/SKILL.md:2: the name \"llll",
		"long/SKILL.md:2: the name has 65 characters: the specification allows 64",
		"long/SKILL.md:3: the description has 1025 characters",
		"long/SKILL.md:4: the compatibility has 501 characters",
		"lower/skill.md:1: the file is called skill.md",
		"other/SKILL.md:2: the name \"another\" differs from its directory \"other\"",
		"spoken name/SKILL.md: users cannot type the name \"Spoken Name\"",
		"spoken name/SKILL.md:2: the name \"Spoken Name\" differs from its directory",
		"vendor/SKILL.md:4: Belay ignores the unknown field \"version\"",
		"vendor/SKILL.md:5: Belay ignores the unknown field \"discription\" (did you mean \"description\"?)",
		"vendor/SKILL.md:6: Belay ignores the unknown field \"model\"",
	})
	if s, _ := catalog.Lookup("colon"); s == nil || s.Description != "Use when: always" {
		t.Errorf("what was tolerated is read: %+v", s)
	}
	for _, s := range catalog.List() {
		if _, err := catalog.Read(t.Context(), s.Name, ""); err != nil {
			t.Errorf("%s cannot be read: %v", s.Name, err)
		}
	}
}

// SPEC K-06
func TestLinksOutOfTheDirectoryAreRefused(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there")
	}
	outside := write(t, map[string]string{"away/SKILL.md": md("name: away", "description: x"), "flat.md": "Away.", "section.md": "Away."})
	dir := write(t, map[string]string{
		"real/SKILL.md": md("name: real", "description: x"), "real/own.md": "Own.", "file/other.md": "x", "section/SKILL.md": md("name: section", "description: x"),
	})
	for link, target := range map[string]string{
		"dirlink": filepath.Join(outside, "away"), "flatlink.md": filepath.Join(outside, "flat.md"), "file/SKILL.md": filepath.Join(outside, "away", "SKILL.md"),
		"section/away.md": filepath.Join(outside, "section.md"), "dangling.md": filepath.Join(outside, "none.md"), "loop": dir, "circle": ".",
		"inside": "real", "section/inside.md": filepath.Join("..", "real", "own.md"),
	} {
		if err := os.Symlink(target, filepath.Join(dir, filepath.FromSlash(link))); err != nil {
			t.Fatal(err)
		}
	}
	catalog := skill.NewCatalog(t.Context(), skill.Dir(dir))
	wants(t, "problems", told(dir, catalog.Problems()), []string{
		"dangling.md:1:", "dirlink/SKILL.md:1: the link leads out of the directory", "file/SKILL.md:1: the link leads out of the directory", "flatlink.md:1: the link leads out of the directory",
		"inside/SKILL.md:2: the name \"real\" differs from its directory \"inside\"",
		"loop/SKILL.md:1: the link leads out of the directory", "real/SKILL.md: the skill is not used, because the skill from inside/SKILL.md has the same name",
		"section/away.md:1: the link leads out of the directory",
	})
	if got, want := names(catalog.List()), []string{"real", "section"}; !slices.Equal(got, want) {
		t.Errorf("skills = %q, want %q", got, want)
	}
	if r, err := catalog.Read(t.Context(), "section", "inside"); err != nil || r.Text != "Own." {
		t.Errorf("a link that stays inside: %q, %v", r.Text, err)
	}
	if r, err := catalog.Read(t.Context(), "section", "away"); err == nil || strings.Contains(r.Text, "Away") || !strings.Contains(err.Error(), "leads out") {
		t.Errorf("a section that is a link out: %q, %v", r.Text, err)
	}
}

// SPEC K-06, K-12
func TestLoadFromAnFS(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"a/SKILL.md": {Data: []byte(md("name: a", "description: x"))}, "a/more.md": {Data: []byte("More.")}, "bad/SKILL.md": {Data: []byte("---\n")}, "flat.md": {Data: []byte("Flat.")},
	}
	catalog := skill.NewCatalog(t.Context(), skill.FS("built in", files))
	if got, want := names(catalog.List()), []string{"a", "flat"}; !slices.Equal(got, want) {
		t.Errorf("skills = %q, want %q", got, want)
	}
	wants(t, "problems", told("", catalog.Problems()), []string{"built in/bad/SKILL.md:1: the frontmatter", "built in/flat.md:1: there is no description"})
	r, err := catalog.Read(t.Context(), "a", "more")
	if diff := cmp.Diff(skill.Reading{Name: "a", Section: "more", Text: "More.", Sections: []string{"more"}}, r); err != nil || diff != "" {
		t.Errorf("read: %v (-want +got):\n%s", err, diff)
	}
}

// SPEC K-06
func TestADirectoryThatIsASkill(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"SKILL.md": "Body.", "more.md": "More.", "other/SKILL.md": md("name: other")})
	catalog := skill.NewCatalog(t.Context(), skill.Dir(dir))
	if got := names(catalog.List()); !slices.Equal(got, []string{"skills"}) {
		t.Errorf("skills = %q, want the directory's name", got)
	}
	if r, err := catalog.Read(t.Context(), "skills", "more"); err != nil || r.Text != "More." {
		t.Errorf("its section: %+v, %v", r, err)
	}
}

// SPEC K-11
func TestAChangedFileIsPickedUp(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "skills")
	source := skill.Dir(dir)
	catalog := skill.NewCatalog(t.Context(), source)
	if len(catalog.List()) > 0 || len(catalog.Problems()) > 0 {
		t.Errorf("a directory that is not there: %v %v", catalog.List(), catalog.Problems())
	}
	steps := []struct {
		rule string
		do   func()
		want string // names with descriptions
	}{
		{"a directory that is made", func() { put(t, dir, "a/SKILL.md", md("name: a", "description: one")) }, "a=one"},
		{"a change of the same length", func() { put(t, dir, "a/SKILL.md", md("name: a", "description: two")) }, "a=two"},
		{"a further skill", func() { put(t, dir, "b.md", md("description: flat")) }, "a=two b=flat"},
		{"a file that turns bad", func() { put(t, dir, "a/SKILL.md", "---\nname: a\n") }, "b=flat"},
		{"and good again", func() { put(t, dir, "a/SKILL.md", md("name: a", "description: three")) }, "a=three b=flat"},
		{"a file that is removed", func() {
			if err := os.Remove(filepath.Join(dir, "b.md")); err != nil {
				t.Fatal(err)
			}
		}, "a=three"},
		{"a file that is put in its place", func() {
			put(t, dir, "a/new", md("name: a", "description: moved"))
			if err := os.Rename(filepath.Join(dir, "a", "new"), filepath.Join(dir, "a", "SKILL.md")); err != nil {
				t.Fatal(err)
			}
		}, "a=moved"},
		{"a directory that is removed", func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}, ""},
	}
	for _, step := range steps {
		step.do()
		catalog.Refresh(t.Context())
		var got []string
		for _, s := range catalog.List() {
			got = append(got, s.Name+"="+s.Description)
		}
		if strings.Join(got, " ") != step.want {
			t.Errorf("%s: skills = %q, want %q", step.rule, got, step.want)
		}
	}
}

// SPEC K-11
func TestAFileThatHasNotChangedIsNotReadAgain(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"a/SKILL.md": md("name: a", "description: one"), "b/SKILL.md": md("name: b", "description: one")})
	old := time.Now().Add(-time.Hour)
	age := func(name string) {
		if err := os.Chtimes(filepath.Join(dir, name, "SKILL.md"), old, old); err != nil {
			t.Fatal(err)
		}
	}
	age("a")
	age("b")
	source := skill.Dir(dir)
	before, err := source.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The file changes but its time does not. If the change is seen, the file was read
	// again.
	put(t, dir, "a/SKILL.md", md("name: a", "description: two"))
	age("a")
	put(t, dir, "b/SKILL.md", md("name: b", "description: longer"))
	after, err := source.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if after[0] != before[0] || after[1] == before[1] || after[1].Description != "longer" {
		t.Errorf("after = %+v %+v, want the first as it was and the second read again", after[0], after[1])
	}
}
