package skill_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/belay-run/belay/skill"
)

// described lists the skills of a catalog by name and description.
func described(c *skill.Catalog) string {
	var all []string
	for _, s := range c.List() {
		all = append(all, s.Name+"="+s.Description)
	}
	return strings.Join(all, " ")
}

// SPEC K-10
func TestLaterSourcesStandInFront(t *testing.T) {
	t.Parallel()
	builtIn := skill.Values(skill.Skill{Name: "a", Description: "built in"}, skill.Skill{Name: "b", Description: "built in"})
	user := write(t, map[string]string{
		"b/SKILL.md": md("name: b", "description: user"), "c/SKILL.md": md("name: c", "id: shared", "description: user"),
		"d1/SKILL.md": md("name: d", "description: first"), "d2/SKILL.md": md("name: d", "description: second"),
	})
	project := write(t, map[string]string{"b/SKILL.md": md("name: b", "description: project"), "e/SKILL.md": md("name: e", "id: shared", "description: project")})
	catalog := skill.NewCatalog(t.Context(), builtIn, skill.Dir(user), skill.Dir(project))
	if got, want := described(catalog), "a=built in b=project d=first e=project"; got != want {
		t.Errorf("skills = %s, want %s", got, want)
	}
	var shadowed []string
	for _, p := range catalog.Problems() {
		if p.Kind == skill.Shadowed {
			line := strings.ReplaceAll(strings.ReplaceAll(p.Error(), user, "USER"), project, "PROJECT")
			shadowed = append(shadowed, strings.ReplaceAll(line, `\`, "/"))
		}
	}
	slices.Sort(shadowed)
	wants(t, "shadowed", shadowed, []string{
		`USER/b/SKILL.md: the skill is not used, because the skill from PROJECT/b/SKILL.md has the same name "b"`,
		`USER/c/SKILL.md: the skill is not used, because the skill from PROJECT/e/SKILL.md has the same id "shared"`,
		`USER/d2/SKILL.md: the skill is not used, because the skill from USER/d1/SKILL.md has the same name "d"`,
		`values in Go: the skill is not used, because the skill from PROJECT/b/SKILL.md has the same name "b"`,
	})
	if r, err := catalog.Read(t.Context(), "d", ""); err != nil || r.Text != "The body." {
		t.Errorf("read = %+v, %v", r, err)
	}

	lease := catalog.AddSource(t.Context(), skill.Values(skill.Skill{Name: "b", Description: "space", Body: "Of the space."}))
	if got, want := described(catalog), "a=built in b=space d=first e=project"; got != want {
		t.Errorf("with a space the skills are %s, want %s", got, want)
	}
	if err := lease.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := described(catalog), "a=built in b=project d=first e=project"; got != want {
		t.Errorf("without it they are %s, want %s", got, want)
	}
}

// SPEC K-12
func TestAFailingSourceHidesNoOther(t *testing.T) {
	t.Parallel()
	var answer func() ([]*skill.Skill, error)
	moody := &source{name: "service", list: func(context.Context) ([]*skill.Skill, error) { return answer() }}
	one := &skill.Skill{Name: "one", Description: "x"}
	steps := []struct {
		rule     string
		answer   func() ([]*skill.Skill, error)
		skills   string
		problems []string
	}{
		{"it fails at first", func() ([]*skill.Skill, error) { return nil, errors.New("no route to it") }, "sound=x", []string{"service: no route to it"}},
		{"it answers", func() ([]*skill.Skill, error) { return []*skill.Skill{one}, nil }, "one=x sound=x", nil},
		{"it fails again: what it had stays", func() ([]*skill.Skill, error) { return nil, errors.New("gone") }, "one=x sound=x", []string{"service: gone"}},
		{"it panics", func() ([]*skill.Skill, error) { panic("oops") }, "one=x sound=x", []string{"service: listing skills panicked: oops"}},
		{"it fails in part", func() ([]*skill.Skill, error) {
			return []*skill.Skill{{Name: "two", Description: "x"}}, errors.Join(&skill.Problem{Kind: skill.NotLoaded, Path: "row 3", Message: "bad"}, errors.New("and more"))
		}, "sound=x two=x", []string{"row 3: bad", "service: and more"}},
		{"it lists what is no skill", func() ([]*skill.Skill, error) {
			return []*skill.Skill{nil, {Name: " "}, {Name: "a\x00b"}, {Name: "three", Description: "x"}}, nil
		}, "sound=x three=x", []string{"service: a skill is nil", "service: skill \" \": it has no name", "service: skill \"a\\x00b\": its name"}},
		{"it has none", func() ([]*skill.Skill, error) { return []*skill.Skill{}, nil }, "sound=x", nil},
	}
	answer = steps[0].answer
	catalog := skill.NewCatalog(t.Context(), skill.Values(skill.Skill{Name: "sound", Description: "x"}), moody)
	for _, step := range steps {
		answer = step.answer
		catalog.Refresh(t.Context())
		if got := described(catalog); got != step.skills {
			t.Errorf("%s: skills = %s, want %s", step.rule, got, step.skills)
		}
		wants(t, step.rule, told("", catalog.Problems()), step.problems)
	}
}

// SPEC K-12
func TestASourceIsReadWhenItIsNeeded(t *testing.T) {
	t.Parallel()
	var asked []string
	rows := &source{
		name: "rows",
		list: func(context.Context) ([]*skill.Skill, error) { return []*skill.Skill{{ID: "7", Name: "row"}}, nil },
		read: func(_ context.Context, id, section string) (skill.Reading, error) {
			asked = append(asked, id+"/"+section)
			switch section {
			case "":
				return skill.Reading{Text: "Body.", Sections: []string{"more"}}, nil
			case "more":
				return skill.Reading{Text: "More."}, nil
			case "panics":
				panic("oops")
			}
			return skill.Reading{}, skill.ErrNotFound
		},
	}
	catalog := skill.NewCatalog(t.Context(), rows)
	if len(asked) > 0 {
		t.Errorf("it was read before anyone asked: %q", asked)
	}
	if r, err := catalog.Read(t.Context(), "row", "more"); err != nil || r.Text != "More." || r.Name != "row" {
		t.Errorf("read = %+v, %v", r, err)
	}
	if _, err := catalog.Read(t.Context(), "row", "less"); !errors.Is(err, skill.ErrNotFound) || !strings.HasSuffix(err.Error(), "It has: more") {
		t.Errorf("error = %v, want one that lists the sections", err)
	}
	if _, err := catalog.Read(t.Context(), "row", "panics"); err == nil || !strings.Contains(err.Error(), "panicked") {
		t.Errorf("error = %v, want that it panicked", err)
	}
}

// SPEC K-15
func TestAddAndRemove(t *testing.T) {
	t.Parallel()
	catalog := skill.NewCatalog(t.Context(), skill.Values(skill.Skill{Name: "a", Description: "source"}))
	lease, err := catalog.Add(skill.Skill{Name: "a", Description: "added", Triggers: []skill.Trigger{{Pattern: "apple"}}}, skill.Skill{Name: "b", Description: "added"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := described(catalog), "a=added b=added"; got != want {
		t.Errorf("skills = %s, want %s", got, want)
	}
	if got := ids(catalog.Match("an apple", "main")); !slices.Equal(got, []string{"a"}) {
		t.Errorf("what was added matches %q", got)
	}
	for rule, s := range map[string]skill.Skill{
		`add skills: skill "b": an added skill already has the name b`: {Name: "b", ID: "other"},
		`add skills: skill "c": an added skill already has the id a`:   {Name: "c", ID: "a"},
		"add skills: added: skill \"\": it has no name":                {},
		"add skills: added: skill \"c\": a trigger has no pattern":     {Name: "c", Triggers: []skill.Trigger{{}}},
		"add skills: added: skill \"c\": its body is not UTF-8":        {Name: "c", Body: "\xff"},
	} {
		if _, err := catalog.Add(skill.Skill{Name: "z", ID: "z"}, s); err == nil || !strings.HasPrefix(err.Error(), rule) {
			t.Errorf("Add(%+v) = %v, want %s", s, err, rule)
		}
	}
	if _, ok := catalog.Lookup("z"); ok {
		t.Error("adding is all or nothing, and z is there")
	}
	for range 2 { // closing twice is allowed
		if err := lease.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := described(catalog), "a=source"; got != want {
		t.Errorf("skills = %s, want %s: what was taken back no longer stands in front", got, want)
	}
	if got := catalog.Match("an apple", "main"); got != nil {
		t.Errorf("what was taken back matches: %v", ids(got))
	}
}

// SPEC K-15
func TestACatalogMayBeUsedByMany(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"a/SKILL.md": md("name: a", "description: x", "triggers: apple")})
	catalog := skill.NewCatalog(t.Context(), skill.Dir(dir))
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 20 {
				lease, err := catalog.Add(skill.Skill{Name: fmt.Sprintf("n%d", i), Description: "x", Body: "x", Triggers: []skill.Trigger{{Pattern: "apple"}}})
				if err != nil {
					t.Error(err)
					return
				}
				if j%5 == 0 {
					catalog.Refresh(t.Context())
				}
				if got := ids(catalog.Match("an apple", "main")); !slices.Contains(got, "a") || !slices.Contains(got, fmt.Sprintf("n%d", i)) {
					t.Errorf("matches = %q, want a and n%d among them", got, i)
				}
				if _, err := catalog.Read(t.Context(), "a", ""); err != nil {
					t.Error(err)
				}
				catalog.List()
				catalog.Problems()
				if err := lease.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got, want := described(catalog), "a=x"; got != want {
		t.Errorf("in the end the skills are %s, want %s", got, want)
	}
}
