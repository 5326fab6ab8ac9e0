package assembly

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/toolbox"
)

// SkillDirs returns the directories with skills that were written for Belay. A skill in a
// later directory replaces an earlier one with the same name.
func SkillDirs(s *config.Loaded) []string {
	var dirs []string
	for _, dir := range []string{s.SystemDir, s.UserDir} {
		if dir != "" {
			dirs = append(dirs, filepath.Join(dir, "skills"))
		}
	}
	if dir := filepath.Join(s.Project, ".belay", "skills"); staysInside(s.Project, dir) {
		dirs = append(dirs, dir)
	}
	return dirs
}

// staysInside reports whether a directory is inside the project after links are resolved,
// or does not exist. A repository from a stranger may contain links to any place.
func staysInside(project, dir string) bool {
	actual, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return true // the directory does not exist
	}
	top, err := filepath.EvalSymlinks(project)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(top, actual)
	return err == nil && filepath.IsLocal(rel)
}

//go:embed builtin
var builtin embed.FS

// builtinSkills are the skills that teach the agent Belay itself. The model gets one when the
// user's words match its triggers, or when the user types its name: until then they cost nothing.
func builtinSkills() skill.Source { //nolint:ireturn // it is used through the interface
	files, err := fs.Sub(builtin, "builtin")
	if err != nil {
		return skill.Values() // never happens: the directory is embedded
	}
	return skill.FS(builtinName, files)
}

// builtinName is where the built-in skills are, for people.
const builtinName = "built in"

// IsBuiltin reports whether a skill is a part of Belay.
func IsBuiltin(s *skill.Skill) bool { return strings.HasPrefix(s.Path, builtinName+"/") }

// OwnSkills reads the built-in skills, and those of the machine, the user and the project.
func OwnSkills(ctx context.Context, s *config.Loaded) *skill.Catalog {
	sources := []skill.Source{builtinSkills()}
	own := filepath.Join(s.Project, ".belay")
	var last []skill.Source
	for _, dir := range SkillDirs(s) {
		if filepath.Dir(dir) == own {
			last = append(last, skill.Dir(dir)) // it replaces those of other coding agents
		} else {
			sources = append(sources, skill.Dir(dir))
		}
	}
	for _, o := range otherSkills(s) {
		if own := o.ownSkills(s); own != nil {
			o.source = &unreplaced{Source: o.source, own: own}
		}
		sources = append(sources, o.source)
	}
	return skill.NewCatalog(ctx, append(sources, last...)...)
}

// AllSkills is like OwnSkills, but also reads the skills of spaces. A running agent gets
// the skills of a space when it installs that space.
func AllSkills(ctx context.Context, s *config.Loaded) *skill.Catalog {
	catalog := OwnSkills(ctx, s)
	for _, one := range SpacesHere(s) {
		if source := one.Skills(); source != nil {
			catalog.AddSource(ctx, source)
		}
	}
	return catalog
}

// tellUnused reports skills that the agent does not have, or that a user cannot type. These
// are files that cannot be loaded, skills that another skill replaces, and the skills of
// Clashes.
func (a *Assembler) tellUnused(s *config.Loaded, catalog *skill.Catalog) {
	unused := slices.DeleteFunc(catalog.Problems(), func(p skill.Problem) bool {
		return p.Kind != skill.NotLoaded && p.Kind != skill.Shadowed
	})
	a.ReportSkillProblems(s, append(unused, a.Clashes(catalog)...))
}

// Clashes returns the skills that a user cannot type as /NAME, because a directive or a
// command of the program has the same name.
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

// ReportSkillProblems sends problems of skills as notices.
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
