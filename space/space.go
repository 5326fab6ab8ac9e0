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

// mcpFile is the name of the file with MCP servers.
const mcpFile = "mcp.json"

// Space is a loaded directory. It is data: nothing of it runs before a [Host]
// installs it.
type Space struct {
	// Manifest describes the space. Directories of projects and operators have
	// none.
	Manifest Manifest
	// Dir is the directory, as an absolute path without links.
	Dir string
	// Origin is its owner. The name of the origin is the id of a space.
	Origin hook.Origin
	// Hooks are those of hooks/.
	Hooks []*declare.Declaration
	// Agents are those of agents/.
	Agents []*subagent.Declaration
	// Servers are the MCP servers of mcp.json, under the names that agents know them by:
	// acme-files for the server files of the space acme.
	Servers []mcptool.Server
	// Hash covers all files that can affect what runs.
	Hash string

	skills  string                            // the directory, or empty
	unread  []skill.Problem                   // skills that could not be loaded
	own     map[string][]*declare.Declaration // the hooks that agents declare, by agent
	broken  map[string]error                  // the mistakes in them
	written map[string]bool                   // by save_json
	faults  error
	read    contents
}

// Load reads a directory and runs nothing. A space must have a manifest; directories of
// projects and operators need none.
//
// The error joins a [Problem] for each mistake. The parts without mistakes are returned
// with it for listings; a host does not install them.
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
	// The hash must match the files that were read, so it is computed before and
	// after.
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

// faulty records the mistakes. A space with mistakes cannot be installed or
// trusted.
func (s *Space) faulty(p *problems) (*Space, error) {
	s.faults = p.err()
	return s, s.faults
}

// Empty reports whether it contains nothing.
func (s *Space) Empty() bool {
	return len(s.Hooks) == 0 && len(s.Agents) == 0 && s.skills == "" && len(s.Servers) == 0
}

// Label names it for people: "space acme", "project", "operator".
func (s *Space) Label() string {
	o := hook.Origin{Kind: s.Origin.Kind, Name: s.Origin.Name}
	return o.String()
}

// Prefix returns the prefix of its hook ids.
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

// Needs returns the names of the grants that its hooks and servers need, in order.
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

// Skills returns the skills of skills/, or nil. In a space, their ids begin
// with the id of the space.
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

// SkillProblems returns which skills could not be loaded. The rest of the space can still
// be installed: a skill is text for the model, never a gate.
func (s *Space) SkillProblems() []skill.Problem { return slices.Clone(s.unread) }

// AgentHooks returns the hooks that one of its agents declares.
func (s *Space) AgentHooks(agent string) []*declare.Declaration { return slices.Clone(s.own[agent]) }

// all returns its hooks, including those of its agents.
func (s *Space) all() []*declare.Declaration {
	all := slices.Clone(s.Hooks)
	for _, a := range s.Agents {
		all = append(all, s.own[a.Name]...)
	}
	return all
}

// Programs returns the hooks, including those of agents, that run a program or call a
// webhook.
func (s *Space) Programs() []*declare.Declaration {
	return slices.DeleteFunc(s.all(), func(d *declare.Declaration) bool { return d.Kind == hook.HandlerAction })
}

// within returns a path below the directory. It fails if the path, or a link in
// it, leads out.
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
		p.addf(full, 0, "it is a link: put a copy here instead")
		return "", false
	}
	return full, true
}

// directory returns a subdirectory, if it exists.
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

// Gates returns the hooks that deny when they fail, as "phase id", in order.
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
	if s.Origin.Kind == hook.OriginSpace { // outside of a space, an agent with a mistake is left out and the rest is loaded
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

// note records the files that hooks write.
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

// checkScripts rejects programs that cannot be trusted: files that hooks write, and files
// that trust does not cover.
func (s *Space) checkScripts(p *problems) {
	for _, d := range s.all() {
		for _, script := range d.Scripts {
			rel, err := filepath.Rel(s.Dir, script)
			if err != nil || !inParts(rel) {
				p.addf(d.File, d.Line, "it runs %s, which trust does not cover: put it into hooks/", script)
				continue
			}
			for name := filepath.ToSlash(rel); name != "."; name = path.Dir(name) {
				if s.written[name] {
					p.addf(d.File, d.Line, "it runs %s, which save_json writes, so it cannot be trusted: run another file", filepath.Base(script))
				}
			}
		}
	}
}

// loadSkills finds the directory of the skills. Mistakes in skills are kept separate from
// mistakes that make a space unusable.
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
	if s.Origin.Kind != hook.OriginSpace { // outside of a space, the program reads skills from all its places
		return
	}
	for _, f := range skill.NewCatalog(context.Background(), skill.Dir(dir)).Problems() {
		if f.Kind == skill.NotLoaded {
			s.unread = append(s.unread, f)
		}
	}
}

// needs returns the grants that a hook needs.
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
