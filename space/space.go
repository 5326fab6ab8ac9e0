package space

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/frontmatter"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/subagent"
)

// mcpFile is the name of the file with servers of tools.
const mcpFile = "mcp.json"

// Space is a directory that was read. It is data: nothing of it runs before a [Host]
// installs it.
type Space struct {
	// Manifest is what it says about itself. What is not a space has none.
	Manifest Manifest
	// Dir is the directory, as an absolute path without links.
	Dir string
	// Origin says whose it is. Its name is the id of a space.
	Origin hook.Origin
	// Hooks are those of hooks/.
	Hooks []*declare.Declaration
	// Agents are those of agents/.
	Agents []*subagent.Declaration
	// Servers are the MCP servers of mcp.json, under the names that agents know them by:
	// acme-files for the server files of the space acme.
	Servers []mcptool.Server
	// Hash is over everything that can make a difference to what runs.
	Hash string

	skills  string                            // the directory, or empty
	unread  []skill.Problem                   // what of it could not be loaded
	own     map[string][]*declare.Declaration // the hooks that agents declare, by agent
	broken  map[string]error                  // what is wrong with them
	written map[string]bool                   // by save_json
	faults  error
	read    contents
}

// Load reads a directory and runs nothing. A space must have a manifest; what a project or
// the operator has in such a directory needs none.
//
// The error joins a [Problem] for each mistake. What is without mistakes is returned with
// it, to be listed; a host does not install it.
func Load(dir string, kind hook.OriginKind) (*Space, error) {
	p := new(problems)
	s := &Space{Dir: dir, Origin: hook.Origin{Kind: kind}, own: make(map[string][]*declare.Declaration), broken: make(map[string]error), written: make(map[string]bool)}
	full, err := filepath.Abs(dir)
	if err == nil {
		full, err = filepath.EvalSymlinks(full)
	}
	if err == nil {
		var info fs.FileInfo
		if info, err = os.Stat(full); err == nil && !info.IsDir() {
			err = errors.New("it is not a directory")
		}
	}
	if err != nil {
		p.addf(dir, 0, "it cannot be loaded: %s", reason(err))
		return s.faulty(p)
	}
	s.Dir = full
	if kind == hook.OriginSpace {
		s.Manifest = readManifest(full, p)
		s.Origin.Name = s.Manifest.ID
	}
	// What is hashed must be what is read, so it is looked at before and afterwards.
	before, err := readContents(full, nil, nil)
	if err != nil {
		p.add(full, err)
		return s.faulty(p)
	}
	s.loadHooks(p)
	s.loadAgents(p)
	s.checkScripts(p)
	s.loadSkills()
	s.loadServers(p)
	if s.read, err = readContents(full, s.written, before); err != nil {
		p.add(full, err)
	} else if !before.same(s.read) {
		p.addf(full, 0, "its files are changing: load it again")
	}
	s.Hash = s.read.hash()
	return s.faulty(p)
}

// faulty keeps what is wrong with it: it is not installed then, nor trusted.
func (s *Space) faulty(p *problems) (*Space, error) {
	s.faults = p.err()
	return s, s.faults
}

// Empty reports whether there is nothing in it.
func (s *Space) Empty() bool {
	return len(s.Hooks) == 0 && len(s.Agents) == 0 && s.skills == "" && len(s.Servers) == 0
}

// Label names it for people: "space acme", "project", "operator".
func (s *Space) Label() string {
	o := hook.Origin{Kind: s.Origin.Kind, Name: s.Origin.Name}
	return o.String()
}

// Prefix is what the ids of its hooks begin with.
func (s *Space) Prefix() string {
	switch s.Origin.Kind {
	case hook.OriginSpace:
		return s.Manifest.ID
	case hook.OriginProject:
		return "project"
	default:
		return ""
	}
}

// Needs are the names of what its hooks and servers need a grant for and cannot do without one, in
// order.
func (s *Space) Needs() []string {
	var names []string
	for _, d := range s.all() {
		names = append(names, needs(d)...)
	}
	if s.Origin.Kind == hook.OriginProject || s.Origin.Kind == hook.OriginSpace {
		for i := range s.Servers {
			if s.Servers[i].URL != "" && !s.Servers[i].Disabled {
				names = append(names, GrantNetwork)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Skills are those of skills/, or nil. The ids of a space's begin with its own.
func (s *Space) Skills() skill.Source { //nolint:ireturn // or nil
	switch {
	case s.skills == "":
		return nil
	case s.Origin.Kind == hook.OriginSpace:
		return prefixed{skill.Dir(s.skills), s.Manifest.ID}
	default:
		return skill.Dir(s.skills)
	}
}

// SkillProblems tells what of a space's skills could not be loaded. It keeps nothing else
// of the space from being installed: a skill is text for the model, and never a gate.
func (s *Space) SkillProblems() []skill.Problem { return slices.Clone(s.unread) }

// AgentHooks are those that one of its agents declares.
func (s *Space) AgentHooks(agent string) []*declare.Declaration { return slices.Clone(s.own[agent]) }

// all are its hooks with those of its agents.
func (s *Space) all() []*declare.Declaration {
	all := slices.Clone(s.Hooks)
	for _, a := range s.Agents {
		all = append(all, s.own[a.Name]...)
	}
	return all
}

// Programs are those of its hooks, agents' own too, that run a program or call a webhook.
func (s *Space) Programs() []*declare.Declaration {
	return slices.DeleteFunc(s.all(), func(d *declare.Declaration) bool { return d.Kind == hook.HandlerAction })
}

// within is a path below the directory, if it is one and no link leads out.
func (s *Space) within(name string, p *problems) (string, bool) {
	full := filepath.Join(s.Dir, name)
	info, err := os.Lstat(full)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			p.addf(full, 0, "%s", reason(err))
		}
		return "", false
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		p.addf(full, 0, "it is a link: put what it leads to here instead")
		return "", false
	}
	return full, true
}

// directory is one below the directory, if there is one.
func (s *Space) directory(name string, p *problems) (string, bool) {
	full, ok := s.within(name, p)
	if !ok {
		return "", false
	}
	if info, err := os.Stat(full); err != nil || !info.IsDir() {
		p.addf(full, 0, "it must be a directory")
		return "", false
	}
	return full, true
}

func (s *Space) loadHooks(p *problems) {
	dir, ok := s.directory("hooks", p)
	if !ok {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		p.addf(dir, 0, "%s", reason(err))
		return
	}
	var files []string
	for _, e := range entries {
		if isDeclaring(e.Name()) {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	if s.Hooks, err = declare.Load(s.Dir, files...); err != nil {
		p.declared(dir, err)
	}
	s.note(s.Hooks, p)
}

// Gates are the hooks that deny when they fail, as "phase id", in order.
func (s *Space) Gates() []string {
	var gates []string
	for _, d := range s.Hooks {
		if isGate(d) && !d.Options.Disabled && !d.Options.Shadow {
			gates = append(gates, d.Phase+" "+label(d, s.Prefix()))
		}
	}
	slices.Sort(gates)
	return slices.Compact(gates)
}

func (s *Space) loadAgents(p *problems) {
	dir, ok := s.directory("agents", p)
	if !ok {
		return
	}
	declared, found := subagent.LoadDir(dir)
	s.Agents = declared
	if s.Origin.Kind == hook.OriginSpace { // elsewhere an agent with a mistake is not had, and the rest is
		p.agents(found)
	}
	for _, a := range declared {
		if a.Hooks.Kind == frontmatter.Null {
			continue
		}
		hooks, err := declare.Decode(s.Dir, a.Path, a.Hooks)
		if err != nil {
			s.broken[a.Name] = err
		}
		if err != nil && s.Origin.Kind == hook.OriginSpace {
			p.declared(a.Path, err)
		}
		s.own[a.Name] = hooks
		s.note(hooks, p)
	}
}

// note takes down what hooks write.
func (s *Space) note(hooks []*declare.Declaration, p *problems) {
	for _, d := range hooks {
		if d.Action == nil || d.Action.Name != "save_json" {
			continue
		}
		rel, err := filepath.Rel(s.Dir, filepath.Join(d.Dir, d.Action.Text))
		if err != nil {
			p.addf(d.File, d.Line, "%v", err)
			continue
		}
		s.written[path.Clean(filepath.ToSlash(rel))] = true
	}
}

// checkScripts refuses programs that cannot be trusted: those that hooks write, and those
// that trust is not about.
func (s *Space) checkScripts(p *problems) {
	for _, d := range s.all() {
		for _, script := range d.Scripts {
			rel, err := filepath.Rel(s.Dir, script)
			if err != nil || !inParts(rel) {
				p.addf(d.File, d.Line, "it runs %s, which trust is not about: put it into hooks/", script)
				continue
			}
			for name := filepath.ToSlash(rel); name != "."; name = path.Dir(name) {
				if s.written[name] {
					p.addf(d.File, d.Line, "it runs %s, which save_json writes: nobody could trust it", filepath.Base(script))
				}
			}
		}
	}
}

// loadSkills looks for the directory of the skills. What is wrong with them is kept apart
// from the mistakes that refuse a space.
func (s *Space) loadSkills() {
	p := new(problems)
	dir, ok := s.directory("skills", p)
	for _, f := range p.list {
		s.unread = append(s.unread, skill.Problem{Kind: skill.NotLoaded, Path: f.Path, Line: f.Line, Message: f.Message, Err: f})
	}
	if !ok {
		return
	}
	s.skills = dir
	if s.Origin.Kind != hook.OriginSpace { // elsewhere they are read by whoever knows the other places
		return
	}
	for _, f := range skill.NewCatalog(context.Background(), skill.Dir(dir)).Problems() {
		if f.Kind == skill.NotLoaded {
			s.unread = append(s.unread, f)
		}
	}
}

// needs are the grants that a hook cannot do without.
func needs(d *declare.Declaration) []string {
	var names []string
	if d.Kind == hook.HandlerWebhook {
		names = append(names, GrantWebhook)
	}
	if extra := d.Options.Capabilities &^ hook.DefaultGrants(hook.Origin{Kind: hook.OriginSpace}) &^ hook.NoCapability; extra != 0 {
		names = append(names, extra.Names()...)
	}
	return names
}

// label names a hook for people.
func label(d *declare.Declaration, prefix string) string {
	if prefix != "" {
		return fmt.Sprintf("%s/%s", prefix, d.ID)
	}
	return d.ID
}
