package assembly

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/dialect/claude"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/subagent"
	"github.com/belay-run/belay/webtool"
)

// agentDir is a directory with agents of Claude Code. Belay puts the prefix before their
// names.
type agentDir struct {
	dir, prefix string
	own         bool // the directory belongs to the user
	plugin      *claude.Plugin
}

// read reads the agents of the directory. It leaves out files that do not belong to the plugin.
func (d *agentDir) read() ([]*claude.Agent, []subagent.Problem) {
	agents, problems := claude.ReadAgents(d.dir, d.prefix)
	if d.plugin == nil {
		return agents, problems
	}
	agents = slices.DeleteFunc(agents, func(one *claude.Agent) bool { return !d.plugin.Has("agents", d.dir, one.Path) })
	problems = slices.DeleteFunc(problems, func(one subagent.Problem) bool { return !d.plugin.Has("agents", d.dir, one.Path) })
	return agents, problems
}

// otherAgentDirs returns the directories with agents of Claude Code. An agent in a later
// directory replaces an earlier one with the same name.
func otherAgentDirs(s *config.Loaded) []agentDir {
	var dirs []agentDir
	if own := claudeFiles(context.Background(), s, nil).Own(); own != "" {
		dirs = append(dirs, agentDir{dir: filepath.Join(own, "agents"), own: true})
	}
	for _, p := range plugins(s) {
		for _, dir := range p.Agents {
			dirs = append(dirs, agentDir{dir: dir, prefix: p.Name + "-", plugin: p})
		}
	}
	if dir := filepath.Join(s.Project, ".claude", "agents"); staysInside(s.Project, dir) {
		dirs = append(dirs, agentDir{dir: dir})
	}
	return dirs
}

// Foreign reports whether a file was written for another coding agent. An error in such a
// file is not a mistake of the user.
func Foreign(s *config.Loaded, path string) bool {
	return slices.ContainsFunc(otherAgentDirs(s), func(d agentDir) bool {
		rel, err := filepath.Rel(d.dir, path)
		return err == nil && filepath.IsLocal(rel)
	})
}

// readOtherAgents reads the agents of Claude Code, and translates them to Belay's names: the
// user's own agents, or those of plugins and the project.
func readOtherAgents(s *config.Loaded, own bool) ([]*claude.Agent, []subagent.Problem) {
	byName := make(map[string]int)
	var all []*claude.Agent
	var problems []subagent.Problem
	stock, err := stockToolNames(s)
	if err != nil {
		return nil, []subagent.Problem{{Path: s.Project, Message: err.Error(), Err: err}}
	}
	replaced := copiedServers(s)
	for _, d := range otherAgentDirs(s) {
		if d.own != own {
			continue
		}
		agents, found := d.read()
		problems = append(problems, found...)
		for _, one := range agents {
			adapt(s, one, stock, replaced)
			if at, ok := byName[one.Name]; ok {
				problems = append(problems, subagent.Problem{Path: all[at].Path, Message: fmt.Sprintf("agent %q is not used: %s replaces it", one.Name, one.Path)})
				all[at] = one
				continue
			}
			byName[one.Name] = len(all)
			all = append(all, one)
		}
	}
	return all, problems
}

// otherAgents returns the agents of Claude Code that no agent of Belay in the same place
// replaces. It returns none if the settings switch them off.
func otherAgents(s *config.Loaded, own bool) ([]*subagent.Declaration, []subagent.Problem) {
	if !s.OtherAgents.Uses("agents") {
		return nil, nil
	}
	read, problems := readOtherAgents(s, own)
	var declared []*subagent.Declaration
	for _, one := range read {
		if ownAgent(s, one.Path, one.Name) == "" {
			declared = append(declared, &one.Declaration)
		}
	}
	return declared, problems
}

// adapt translates an agent to Belay's names, and notes what it changed. It leaves out tools
// that Belay does not have, and tools whose limit it cannot keep. So the agent never has more
// rights than its file gives.
// replaced are the servers of the project that are in Belay's own mcp.json.
func adapt(s *config.Loaded, a *claude.Agent, stock []string, replaced map[string]bool) {
	notef := func(format string, args ...any) { a.Notes = append(a.Notes, fmt.Sprintf(format, args...)) }
	if a.Model != "" && a.Model != "inherit" {
		if _, err := FindModel(s, a.Model); err != nil || !strings.Contains(a.Model, "/") {
			notef("model: %s is not a model of Belay: the model of the main agent is used", a.Model)
			a.Model = ""
		}
	} else {
		a.Model = ""
	}
	given, limited := a.Tools, make(map[string][]string)
	if given != nil {
		a.Tools = []string{}
	}
	for _, name := range given {
		bare, _, limit := strings.Cut(name, "(")
		ours := ourTool(bare)
		switch {
		case ours == skill.InvokeTool:
			continue // every agent can use skills
		case ours == webtool.SearchTool && !slices.Contains(stock, ours):
			notef("tools: %s needs a search engine (web.search in belay.yaml); the agent runs without it", name)
			continue
		case !slices.Contains(append(stock, subagent.InvokeTool), ours) && !OfServer(ours):
			notef("tools: Belay has no tool %s; the agent runs without it", name)
			continue
		case limit:
			patterns := claude.Patterns(name, &claude.PermissionOptions{Project: RealDir(s.Project)})
			patterns = slices.DeleteFunc(patterns, func(p string) bool { return !strings.HasPrefix(p, ours+"(") })
			if len(patterns) == 0 {
				notef("tools: Belay cannot keep the limit %s; the agent runs without it", name)
				continue
			}
			limited[ours] = append(limited[ours], patterns...)
			notef("tools: %s is the limit %s in Belay", name, strings.Join(patterns, ", "))
		default: // another name for the same tool needs no note
		}
		for _, tool := range append([]string{ours}, moved(ours, replaced)...) {
			if !limit {
				limited[tool] = append(limited[tool], "") // the whole tool
			}
			if !slices.Contains(a.Tools, tool) {
				a.Tools = append(a.Tools, tool)
			}
		}
	}
	for _, tool := range a.Tools {
		if !slices.Contains(limited[tool], "") {
			a.Limits = append(a.Limits, limited[tool]...)
		}
	}
	without(a, stock)
}

// moved returns the name of a server's tool after Belay's own mcp.json of the project has
// replaced the server.
func moved(tool string, replaced map[string]bool) []string {
	if server, _, ok := strings.Cut(tool, "__"); ok && replaced[server] {
		return []string{"project-" + tool}
	}
	return nil
}

// ourTool returns Belay's name of a tool of Claude Code, or "" if Belay does not have the
// tool.
func ourTool(name string) string {
	if server, ok := strings.CutPrefix(name, "mcp__"); ok {
		if server, _, named := strings.Cut(server, "__"); !named {
			return server + "__*"
		}
		return server
	}
	if slices.Contains(narrower, strings.ToLower(name)) {
		return ""
	}
	ours, _ := ForeignName(name)
	return ours
}

// narrower are tools, in lower case, that do only a part of what Belay's tool does. An agent
// that has one of them must not get Belay's tool.
var narrower = []string{"notebookedit", "notebookread", "edit_notebook", "editnotebook", "edit_notebook_file", "delete", "delete_file", "insert", "view_image", "codebase_search", "file_search"}

// without removes tools that an agent must not have. If only some calls of a tool are not
// allowed, it removes the whole tool.
func without(a *claude.Agent, stock []string) {
	if len(a.Without) == 0 {
		return
	}
	if a.Tools == nil {
		a.Tools = append(slices.Clone(stock), subagent.InvokeTool, "*__*")
	}
	for _, name := range a.Without {
		bare, _, limit := strings.Cut(name, "(")
		ours := ourTool(bare)
		if ours == "" { // without a part of a tool, the agent does not get the tool
			if ours, limit = dialect.OurName(bare); !limit {
				continue
			}
		}
		if limit && ours != "" {
			a.Notes = append(a.Notes, fmt.Sprintf("disallowedTools: %s: the agent runs without %s", name, ours))
		}
		a.Tools = slices.DeleteFunc(a.Tools, func(tool string) bool {
			return ours == tool || strings.Contains(ours, "__") && OfServer(tool) // such a pattern may name the tool
		})
	}
}

// agentUses reports the agents of Claude Code.
func agentUses(s *config.Loaded) []OtherFile {
	return append(agentUsesIn(s, true), agentUsesIn(s, false)...)
}

func agentUsesIn(s *config.Loaded, own bool) []OtherFile {
	agents, problems := readOtherAgents(s, own)
	var uses []OtherFile
	for _, one := range agents {
		f := OtherFile{Path: ShownPath(s, one.Path), Use: switchedOff(s, "agents")}
		copied := ownAgent(s, one.Path, one.Name)
		switch {
		case !s.OtherAgents.Uses("agents"):
		case copied != "":
			f.Use = replacedBy(s, "agent "+one.Name, copied)
		case HooksUnread(&one.Declaration) != nil:
			f.Use, f.Partly = "not used: "+HooksUnread(&one.Declaration).Message, true
		default:
			f.Use = strings.Join(append([]string{"agent " + one.Name}, one.Notes...), "; ")
			f.Partly = noteworthy(one.Notes)
		}
		uses = append(uses, f)
	}
	for i := range problems {
		f := OtherFile{Path: ShownPath(s, problems[i].Path), Use: "not used: " + problems[i].Message, Partly: true}
		if !s.OtherAgents.Uses("agents") {
			f.Use, f.Partly = switchedOff(s, "agents"), false
		}
		uses = append(uses, f)
	}
	return uses
}

// LimitHooks returns the hook that keeps the limits of an agent, or none.
func LimitHooks(d *subagent.Declaration, floor *Floor) []hook.Subscription {
	if len(d.Limits) == 0 {
		return nil
	}
	return []hook.Subscription{belay.ToolPre.On("agent.limits", func(ctx context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
		var mine []string
		for _, pattern := range d.Limits {
			if !strings.HasPrefix(pattern, call.Tool()+"(") {
				continue
			}
			covered, err := floor.Covers(ctx, pattern, call)
			if covered || err != nil {
				return belay.Pass, err // tool.pre is a gate, so an error denies the call
			}
			mine = append(mine, pattern)
		}
		if len(mine) > 0 {
			return belay.Deny(fmt.Sprintf("the agent %s may use only %s", d.Name, strings.Join(mine, ", "))), nil
		}
		return belay.Pass, nil
	}, &hook.Options{Description: "keeps the limits in the agent's file", Version: "1"})}
}
