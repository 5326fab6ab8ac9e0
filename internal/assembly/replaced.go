package assembly

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/subagent"
)

// A file of Belay replaces the file of another agent that has the same thing in the same
// place: the user's own directory, or the project. So nothing runs twice after
// "belay import", which leaves the originals where they are. This file says which agents,
// skills and servers are replaced, and spoken.go says which hooks are.

// replacedBy is the use of a file that one of Belay's own files replaces.
func replacedBy(s *config.Loaded, what, file string) string {
	return fmt.Sprintf("%s: not used: %s replaces it", what, ShownPath(s, file))
}

// ownDir returns the directory of Belay's own files of a kind in the same place as a directory
// of another agent: the user's, or else the project's. It returns "" if there is none.
func ownDir(s *config.Loaded, own bool, kind string) string {
	switch dir := filepath.Join(ProjectPlace(s), kind); {
	case own && s.UserDir != "":
		return filepath.Join(s.UserDir, kind)
	case !own && staysInside(s.Project, dir):
		return dir
	default:
		return ""
	}
}

// ownAgent returns the file of Belay's own agent that replaces an agent of another coding
// agent, or "". path and name are those of the replaced agent.
func ownAgent(s *config.Loaded, path, name string) string {
	for _, d := range otherAgentDirs(s) {
		dir := ownDir(s, d.own, "agents")
		if dir == "" || d.prefix != "" || !within(d.dir, path) {
			continue
		}
		declared, _ := subagent.LoadDir(dir) // Agents reports the problems
		for _, one := range declared {
			if one.Name == name {
				return one.Path
			}
		}
	}
	return ""
}

// SkillImported is the key in the metadata of a skill that "belay import" wrote under another
// name. Its value is the name that the command of the other agent has.
const SkillImported = "imported"

// unreplaced is a source with the skills of another agent that no skill of Belay replaces.
type unreplaced struct {
	skill.Source

	own skill.Source // Belay's skills in the same place
}

func (u *unreplaced) String() string { return fmt.Sprint(u.Source) }

// List lists the skills that are not replaced.
func (u *unreplaced) List(ctx context.Context) ([]*skill.Skill, error) {
	all, err := u.Source.List(ctx)
	if len(all) == 0 {
		return all, err
	}
	own := skillsByOldName(ctx, u.own)
	return slices.DeleteFunc(slices.Clone(all), func(one *skill.Skill) bool { return own[one.Name] != nil }), err
}

// ownSkills returns Belay's own skills in the same place, or nil if there are none.
func (o *otherSkill) ownSkills(s *config.Loaded) skill.Source { //nolint:ireturn // see otherSkill
	dir := ownDir(s, o.own, "skills")
	if dir == "" || o.plugin {
		return nil
	}
	return skill.Dir(dir)
}

// skillsByOldName returns Belay's own skills by the names that they replace.
func skillsByOldName(ctx context.Context, own skill.Source) map[string]*skill.Skill {
	byName := make(map[string]*skill.Skill)
	list, _ := own.List(ctx) // the catalog reports the problems
	for _, one := range list {
		byName[one.Name] = one
		if old := one.Metadata[SkillImported]; old != "" {
			byName[old] = one
		}
	}
	return byName
}

// ownServers returns the MCP servers of Belay's own files that replace those of .mcp.json: the
// file of each, by the name that it has in .mcp.json. Two servers with one name would stop
// the agent.
func ownServers(s *config.Loaded) map[string]string {
	files := make(map[string]string)
	for _, dir := range []string{s.SystemDir, s.UserDir, ownDir(s, false, "")} {
		if dir == "" {
			continue
		}
		read, _ := mcptool.Load(filepath.Join(dir, "mcp.json")) // loading the place reports the error
		if read == nil {
			continue
		}
		for i := range read.Servers {
			files[read.Servers[i].Name] = read.Servers[i].File
		}
	}
	return files
}

// copiedServers returns the names of the servers of .mcp.json that the project's own mcp.json
// has.
func copiedServers(s *config.Loaded) map[string]bool {
	copied := make(map[string]bool)
	for name, file := range ownServers(s) {
		copied[name] = within(ProjectPlace(s), file)
	}
	return copied
}
