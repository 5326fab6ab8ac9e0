package skill_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/skill"
)

func link(t *testing.T, dir, name, target string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there")
	}
	if err := os.Symlink(target, filepath.Join(dir, filepath.FromSlash(name))); err != nil {
		t.Fatal(err)
	}
}

// A link to a section or resource that leads out of the directory is reported. It is not
// listed and cannot be read. Other files, and links that stay inside, are not affected.
//
// SPEC K-06
func TestSectionsAndResourcesThatLeadOutAreProblems(t *testing.T) {
	t.Parallel()
	outside := write(t, map[string]string{"secret.md": "Secret.", "dir/secret.py": "Secret."})
	for rule, test := range map[string]struct {
		link, target string
		read         string // the section or resource that the model asks for
		want         string // the reported problem
	}{
		"a section":                           {"a/out.md", filepath.Join(outside, "secret.md"), "out", "a/out.md:1: the link leads out of the directory"},
		"a section, by way of ..":             {"a/out.md", filepath.Join("..", "..", "..", filepath.Base(filepath.Dir(outside)), "skills", "secret.md"), "out", "a/out.md:1: the link leads out of the directory"},
		"a section that leads nowhere":        {"a/out.md", "none.md", "out", "a/out.md:1: "},
		"a resource":                          {"a/scripts/out.py", filepath.Join(outside, "dir", "secret.py"), "scripts/out.py", "a/scripts/out.py:1: the link leads out of the directory"},
		"a resource further below":            {"a/scripts/lib/out.py", filepath.Join(outside, "dir", "secret.py"), "scripts/lib/out.py", "a/scripts/lib/out.py:1: the link leads out of the directory"},
		"a directory among the resources":     {"a/scripts/out", filepath.Join(outside, "dir"), "scripts/out", "a/scripts/out:1: the link leads out of the directory"},
		"the directory of the resources":      {"a/assets", filepath.Join(outside, "dir"), "assets/secret.py", "a/assets:1: the link leads out of the directory"},
		"a resource that leads out in a step": {"a/scripts/out.py", filepath.Join("..", "..", "hop"), "scripts/out.py", "a/scripts/out.py:1: the link leads out of the directory"},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			dir := write(t, map[string]string{
				"a/SKILL.md": md("name: a", "description: x"), "a/own.md": "Own.", "a/scripts/own.py": "Own.", "a/scripts/lib/own.py": "Own.", "b/SKILL.md": md("name: b", "description: x"), "b/own.md": "B's.",
			})
			link(t, dir, ".hop", outside)
			link(t, dir, "hop", filepath.Join(".hop", "secret.md"))
			link(t, dir, "a/inside.md", filepath.Join("..", "b", "own.md"))
			link(t, dir, "a/scripts/inside.py", "own.py")
			link(t, dir, "a/scripts/circle", ".")
			link(t, dir, test.link, test.target)
			catalog := skill.NewCatalog(t.Context(), skill.Dir(dir))
			wants(t, "problems", told(dir, catalog.Problems()), []string{test.want})
			for _, p := range catalog.Problems() {
				if p.Kind != skill.NotLoaded || p.Skill != "a" {
					t.Errorf("the problem is %+v, want that something of a is not loaded", p)
				}
			}
			r, err := catalog.Read(t.Context(), "a", "")
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(r.Sections, []string{"inside", "own"}) || !slices.Equal(r.Resources, []string{"scripts/inside.py", "scripts/lib/own.py", "scripts/own.py"}) {
				t.Errorf("sections = %q, resources = %q, want those that stay inside", r.Sections, r.Resources)
			}
			if r, err := catalog.Read(t.Context(), "a", test.read); err == nil || strings.Contains(r.Text, "Secret") {
				t.Errorf("it is read: %q, %v", r.Text, err)
			}
			if r, err := catalog.Read(t.Context(), "a", "inside"); err != nil || r.Text != "B's." {
				t.Errorf("a link that stays inside: %q, %v", r.Text, err)
			}
			found, err := skill.Check(dir, false)
			if err != nil {
				t.Fatal(err)
			}
			wants(t, "the check", told(dir, found), []string{test.want})
		})
	}
}

// A link that is created later, next to an unchanged file, is never listed. It is
// reported after the skill was read.
//
// SPEC K-06
func TestALinkThatComesLaterIsReported(t *testing.T) {
	t.Parallel()
	outside := write(t, map[string]string{"secret.md": "Secret."})
	dir := write(t, map[string]string{"a/SKILL.md": md("name: a", "description: x")})
	longAgo := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "a", "SKILL.md"), longAgo, longAgo); err != nil {
		t.Fatal(err)
	}
	catalog := skill.NewCatalog(t.Context(), skill.Dir(dir))
	link(t, dir, "a/out.md", filepath.Join(outside, "secret.md"))
	if r, err := catalog.Read(t.Context(), "a", ""); err != nil || len(r.Sections) > 0 {
		t.Errorf("sections = %q, %v, want none", r.Sections, err)
	}
	if r, err := catalog.Read(t.Context(), "a", "out"); errors.Is(err, skill.ErrNotFound) || err == nil || !strings.Contains(err.Error(), "leads out") || r.Text != "" {
		t.Errorf("the section: %q, %v", r.Text, err)
	}
	catalog.Refresh(t.Context())
	wants(t, "problems", told(dir, catalog.Problems()), []string{"a/out.md:1: the link leads out of the directory"})
	if err := os.Remove(filepath.Join(dir, "a", "out.md")); err != nil {
		t.Fatal(err)
	}
	if _, err := catalog.Read(t.Context(), "a", ""); err != nil {
		t.Fatal(err)
	}
	catalog.Refresh(t.Context())
	wants(t, "problems when it is gone", told(dir, catalog.Problems()), nil)
}
