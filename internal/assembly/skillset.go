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

// SkillDirs returns the directories with skills, in rising precedence: those of the user, then those of the project.
// Skills that a project has for another agent are used too.
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

// staysInside reports whether a directory of the project is inside the project, with links resolved. A checkout of a
// stranger may have a link that leads anywhere.
func staysInside(project, dir string) bool {
	actual, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return true // it does not exist
	}
	top, err := filepath.EvalSymlinks(project)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(top, actual)
	return err == nil && filepath.IsLocal(rel)
}

// OwnSkills reads the skills of the machine, the user and the project.
func OwnSkills(ctx context.Context, s *config.Loaded) *skill.Catalog {
	var sources []skill.Source
	for _, dir := range SkillDirs(s) {
		sources = append(sources, skill.Dir(dir))
	}
	return skill.NewCatalog(ctx, sources...)
}

// AllSkills reads the skills of spaces as well. A running agent gets them with the rest of each space.
func AllSkills(ctx context.Context, s *config.Loaded) *skill.Catalog {
	catalog := OwnSkills(ctx, s)
	for _, one := range SpacesHere(s) {
		if source := one.Skills(); source != nil {
			catalog.AddSource(ctx, source)
		}
	}
	return catalog
}

// tellUnused reports skills that the agent does not have, or that cannot be typed: files that cannot be loaded, skills
// that another one replaces, and names that a directive has.
func (a *Assembler) tellUnused(s *config.Loaded, catalog *skill.Catalog) {
	unused := slices.DeleteFunc(catalog.Problems(), func(p skill.Problem) bool {
		return p.Kind != skill.NotLoaded && p.Kind != skill.Shadowed
	})
	a.ReportSkillProblems(s, append(unused, a.Clashes(catalog)...))
}

// Clashes returns the skills that cannot be typed with a slash, because a directive has the same name.
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
					Message: fmt.Sprintf("/%s is a directive, so the skill cannot be typed as /%s: give it another name", name, name),
				})
			}
		}
	}
	return found
}

// ReportSkillProblems reports problems of skills.
func (a *Assembler) ReportSkillProblems(s *config.Loaded, problems []skill.Problem) {
	for i := range problems {
		p := problems[i]
		p.Path = RelativePath(s, p.Path)
		a.label(strings.ReplaceAll(string(p.Kind), "_", " "), visible.OneLine(p.Error()))
	}
}

// SkillNames returns the names of all skills.
func SkillNames(c *skill.Catalog) []string {
	var names []string
	for _, s := range c.List() {
		names = append(names, s.Name)
	}
	return names
}
