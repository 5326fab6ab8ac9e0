package inspect

import (
	"fmt"
	"path/filepath"

	"github.com/belay-run/belay/internal/assembly"
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

// Skill is one skill in a listing.
type Skill struct {
	Name        string   `json:"name"`
	ID          string   `json:"id"`
	Description string   `json:"description,omitempty"`
	Priority    int      `json:"priority,omitempty"`
	Hidden      bool     `json:"hidden,omitempty"`
	Triggers    int      `json:"triggers,omitempty"`
	Sections    []string `json:"sections,omitempty"`
	Agents      []string `json:"agents,omitempty"`
	Path        string   `json:"path"`
}

// SkillOf describes a skill.
func SkillOf(s *skill.Skill) Skill {
	l := Skill{
		Name: s.Name, ID: s.ID, Description: s.Description, Priority: s.Priority, Hidden: s.Hidden, Triggers: len(s.Triggers), Agents: s.Agents, Path: s.Path,
	}
	for _, section := range s.Sections {
		l.Sections = append(l.Sections, section.Name)
	}
	return l
}

// Agent is one agent in a listing.
type Agent struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Model       string   `json:"model,omitempty"`
	Tools       []string `json:"tools"`
	Skills      []string `json:"skills"`
	Mode        string   `json:"mode,omitempty"`
	Path        string   `json:"path"`
	Space       string   `json:"space,omitempty"`
	Mistakes    []string `json:"mistakes,omitempty"`
}

// AgentOf describes a declared agent with the mistakes of its file.
func AgentOf(d *subagent.Declaration, spaces []*space.Space, mistakes []subagent.Problem) Agent {
	return Agent{d.Name, d.Description, d.Model, d.Tools, d.Skills, d.Mode, d.Path, SpaceOf(spaces, d.Path), messages(mistakes)}
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
