package inspect

import (
	"fmt"
	"path/filepath"

	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/serve/api"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/space"
	"github.com/belay-run/belay/subagent"
)

// SpaceOf returns the id of the space that contains a file, or "".
func SpaceOf(spaces []*space.Space, file string) string {
	for _, s := range spaces {
		if rel, err := filepath.Rel(s.Dir, assembly.RealDir(file)); err == nil && filepath.IsLocal(rel) {
			return s.Manifest.ID
		}
	}
	return ""
}

// SkillOf describes a skill.
func SkillOf(s *skill.Skill) api.Skill {
	l := api.Skill{
		Name: s.Name, ID: s.ID, Description: s.Description, Priority: s.Priority, Hidden: s.Hidden, Triggers: len(s.Triggers), Agents: s.Agents, Path: s.Path,
	}
	for _, section := range s.Sections {
		l.Sections = append(l.Sections, section.Name)
	}
	return l
}

// AgentOf describes a declared agent with the mistakes of its file.
func AgentOf(d *subagent.Declaration, spaces []*space.Space, mistakes []subagent.Problem) api.Agent {
	return api.Agent{
		Name: d.Name, Description: d.Description, Model: d.Model, Tools: d.Tools, Skills: d.Skills, Mode: d.Mode, Path: d.Path,
		Space: SpaceOf(spaces, d.Path), Mistakes: messages(mistakes),
	}
}

func messages(problems []subagent.Problem) []string {
	var all []string
	for i := range problems {
		text := problems[i].Message
		if line := problems[i].Line; line > 0 {
			text = fmt.Sprintf("line %d: %s", line, text)
		}
		all = append(all, text)
	}
	return all
}
