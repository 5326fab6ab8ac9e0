package assembly

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/toolbox"
)

// skillDirs are where skills are looked for, in rising precedence: the user's, and the
// project's. Skills that a project has for another agent are skills too.
func SkillDirs(s *config.Loaded) []string {
	var dirs []string
	for _, dir := range []string{s.SystemDir, s.UserDir} {
		if dir != "" {
			dirs = append(dirs, filepath.Join(dir, "skills"))
		}
	}
	for _, of := range []string{".claude", ".belay"} {
		if dir := filepath.Join(s.Project, of, "skills"); staysInside(s.Project, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// staysInside reports whether a directory of the project is in the project, with all
// links followed: a stranger's checkout may have one that leads anywhere.
func staysInside(project, dir string) bool {
	actual, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return true // it is not there
	}
	top, err := filepath.EvalSymlinks(project)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(top, actual)
	return err == nil && filepath.IsLocal(rel)
}

// openSkills reads the skills that there are.
func OwnSkills(ctx context.Context, s *config.Loaded) *skill.Catalog {
	var sources []skill.Source
	for _, dir := range SkillDirs(s) {
		sources = append(sources, skill.Dir(dir))
	}
	return skill.NewCatalog(ctx, sources...)
}

// openAllSkills reads the skills of spaces too, which an agent that runs gets with its spaces.
func AllSkills(ctx context.Context, s *config.Loaded) *skill.Catalog {
	catalog := OwnSkills(ctx, s)
	for _, one := range SpacesHere(s) {
		if source := one.Skills(); source != nil {
			catalog.AddSource(ctx, source)
		}
	}
	return catalog
}

// tellUnused tells of the skills that an agent here does not have, or not as it may seem:
// what cannot be loaded, what another stands in front of, and whose name is a directive's.
func (a *Assembler) tellUnused(s *config.Loaded, catalog *skill.Catalog) {
	unused := slices.DeleteFunc(catalog.Problems(), func(p skill.Problem) bool {
		return p.Kind != skill.NotLoaded && p.Kind != skill.Shadowed
	})
	a.ReportSkillProblems(s, append(unused, a.Clashes(catalog)...))
}

// clashes returns the skills that cannot be typed with a slash, because a directive has the same name.
func (a *Assembler) Clashes(catalog *skill.Catalog) []skill.Problem {
	var taken []string
	for _, d := range toolbox.Directives() {
		taken = append(taken, d.Name)
	}
	var found []skill.Problem
	for _, name := range append(taken, a.Reserved...) {
		for _, s := range catalog.List() {
			if s.Name == name && !s.ModelOnly && !slices.ContainsFunc(found, func(p skill.Problem) bool { return p.Skill == s.Name }) {
				found = append(found, skill.Problem{
					Kind: skill.Shadowed, Path: s.Path, Skill: s.Name,
					Message: fmt.Sprintf("/%s is a directive, so that the skill cannot be named as /%s: give it another name", name, name),
				})
			}
		}
	}
	return found
}

// tellProblems tells people what is wrong with skills.
func (a *Assembler) ReportSkillProblems(s *config.Loaded, problems []skill.Problem) {
	for i := range problems {
		p := problems[i]
		p.Path = RelativePath(s, p.Path)
		a.label(strings.ReplaceAll(string(p.Kind), "_", " "), visible.OneLine(p.Error()))
	}
}

func SkillNames(c *skill.Catalog) []string {
	var names []string
	for _, s := range c.List() {
		names = append(names, s.Name)
	}
	return names
}
