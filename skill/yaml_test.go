package skill_test

import (
	"slices"
	"testing"

	"github.com/belay-run/belay/skill"
)

// A YAML skill has its text in the key body, or it has front matter and a body like a
// Markdown file.
//
// SPEC K-06
func TestAYAMLFileMayHaveFrontMatterAndABody(t *testing.T) {
	t.Parallel()
	for rule, test := range map[string]struct {
		file, text string
		body       string
		tolerated  []string
	}{
		"front matter and a body":                        {"a.yaml", "---\ndescription: x\n---\nDo it.\n", "Do it.", nil},
		"the other ending":                               {"a.yml", "---\ndescription: x\n---\nDo it.\n", "Do it.", nil},
		"lines of another system":                        {"a.yaml", "---\r\ndescription: x\r\n---\r\nDo it.\r\n", "Do it.", nil},
		"a body that is no YAML":                         {"a.yaml", "---\ndescription: x\n---\n# Do: it\n\t- [ now\n", "# Do: it\n\t- [ now", nil},
		"a fence in the body":                            {"a.yaml", "---\ndescription: x\n---\nDo it.\n---\nWell.\n", "Do it.\n---\nWell.", nil},
		"a byte order mark":                              {"a.yaml", "\ufeff---\ndescription: x\n---\nDo it.\n", "Do it.", []string{"a.yaml:1: the file begins with a byte order mark"}},
		"a mapping with the key body":                    {"a.yaml", "description: x\nbody: Do it.\n", "Do it.", nil},
		"a mapping behind the mark of a document":        {"a.yaml", "---\ndescription: x\nbody: Do it.\n", "Do it.", nil},
		"the key body, and nothing behind the last line": {"a.yaml", "---\ndescription: x\nbody: Do it.\n---\n", "Do it.", nil},
		"the key body and a body: the key is not read":   {"a.yaml", "---\ndescription: x\nbody: Not this.\n---\nDo it.\n", "Do it.", []string{`a.yaml:3: Belay ignores the unknown field "body"`}},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			dir := write(t, map[string]string{test.file: test.text})
			catalog := skill.NewCatalog(t.Context(), skill.Dir(dir))
			wants(t, "problems", told(dir, catalog.Problems()), test.tolerated)
			if got := names(catalog.List()); !slices.Equal(got, []string{"a"}) {
				t.Fatalf("skills = %q, want a", got)
			}
			if s := catalog.List()[0]; s.Description != "x" {
				t.Errorf("the description is %q, want x", s.Description)
			}
			if r, err := catalog.Read(t.Context(), "a", ""); err != nil || r.Text != test.body {
				t.Errorf("the body is %q, %v, want %q", r.Text, err, test.body)
			}
			found, err := skill.Check(dir, false)
			if err != nil {
				t.Fatal(err)
			}
			if len(found) != len(test.tolerated) {
				t.Errorf("the check found %q, want %d", told(dir, found), len(test.tolerated))
			}
		})
	}
}

// SPEC K-06
func TestABadYAMLFileIsReportedAndHidesNoOther(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"good.yaml":  "---\ndescription: x\n---\nDo it.\n",
		"empty.yaml": "---\ndescription: x\n---\n\n",
		"twice.yaml": "---\ndescription: x\ndescription: z\n---\nDo it.\n",
		"list.yaml":  "---\n- a\n---\nDo it.\n",
		"two.yaml":   "description: x\nbody: a\n---\ndescription: z\n",
	})
	catalog := skill.NewCatalog(t.Context(), skill.Dir(dir))
	if got := names(catalog.List()); !slices.Equal(got, []string{"good"}) {
		t.Errorf("skills = %q, want good", got)
	}
	wants(t, "problems", told(dir, catalog.Problems()), []string{
		"empty.yaml:1: there is no body", "list.yaml:2: the YAML is a list", `twice.yaml:3: the key "description" occurs twice`, "two.yaml:4: a second document",
	})
}

// An invalid SKILL.md at the top level does not hide the skills below it.
//
// SPEC K-06
func TestABadSkillOfTheWholeDirectoryHidesNoOther(t *testing.T) {
	t.Parallel()
	for rule, file := range map[string]string{"it cannot be read": "SKILL.md", "it is a directory": "SKILL.md/x"} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			dir := write(t, map[string]string{file: "---\nname: x\n", "section.md": "A section.", "good/SKILL.md": md("name: good", "description: x")})
			catalog := skill.NewCatalog(t.Context(), skill.Dir(dir))
			if got := names(catalog.List()); !slices.Contains(got, "good") {
				t.Errorf("skills = %q, want good among them", got)
			}
			if !slices.ContainsFunc(catalog.Problems(), func(p skill.Problem) bool { return p.Kind == skill.NotLoaded }) {
				t.Errorf("problems = %q, want one about SKILL.md", told(dir, catalog.Problems()))
			}
		})
	}
}
