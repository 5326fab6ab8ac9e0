package assembly

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/dialect/claude"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/subagent"
)

// VendorHooks reads the hooks of an agent: those of the project, or the user's own. The place
// is nil if there are none.
func VendorHooks(s *config.Loaded, vendor dialect.Vendor, own bool) (*HookPlace, []*declare.Declaration, error) {
	agents := agentsWithHooks()
	for i := range agents {
		if agents[i].vendor != vendor {
			continue
		}
		base := s.Project
		if own {
			home, err := os.UserHomeDir()
			if err != nil {
				return nil, nil, err
			}
			base = home
		}
		p := newHookPlace(s, &agents[i], base, own, nil)
		if _, err := os.Stat(p.Dir); errors.Is(err, fs.ErrNotExist) || !own && !staysInside(s.Project, filepath.Join(base, agents[i].dir)) {
			return nil, nil, nil
		}
		hooks, err := p.Read()
		return p, hooks, err
	}
	return nil, nil, nil
}

// TranslatePermissions translates the permissions of a file, as [OtherPermissions] does.
func TranslatePermissions(s *config.Loaded, settings *claude.Settings, path string, own bool) *claude.Permissions {
	return permissionsOf(s, &settingsFile{path: path, own: own, Settings: settings})
}

// ReadAgents reads the agents of a directory of another coding agent, and translates them to
// Belay's names. servers are the MCP servers of the project that are imported, too.
func ReadAgents(s *config.Loaded, dir string, servers map[string]bool) ([]*claude.Agent, []subagent.Problem) {
	stock, err := stockToolNames(s)
	if err != nil {
		return nil, []subagent.Problem{{Path: s.Project, Message: err.Error(), Err: err}}
	}
	agents, problems := claude.ReadAgents(dir, "")
	for _, a := range agents {
		adapt(s, a, stock, servers)
	}
	return agents, problems
}

// SkillProblems returns the problems that an error of a source of skills joins.
func SkillProblems(err error) []*skill.Problem { return problemsOf(err) }

// SkillDialect is the key in the metadata of a skill that names the agent whose placeholders
// its text has. Belay knows those of claude-code.
const SkillDialect = "dialect"
