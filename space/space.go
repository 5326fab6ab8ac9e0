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
	"github.com/belay-run/belay/internal/namedfile"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/skill"
	"github.com/belay-run/belay/subagent"
)

// mcpFile is the name of the file with the MCP servers.
const mcpFile = "mcp.json"

// Space is a loaded directory. It is only data: nothing of it runs before a [Host] installs
// it.
type Space struct {
	// Manifest describes the space. It is empty for directories of projects and operators.
	Manifest Manifest
	// Dir is the absolute path of the directory, without links.
	Dir string
	// Origin says where the directory comes from. For a space, the name of the origin is
	// the space's id.
	Origin hook.Origin
	// Hooks are the hooks in hooks/.
	Hooks []*declare.Declaration
	// Agents are the agents in agents/.
	Agents []*subagent.Declaration
	// Servers are the MCP servers in mcp.json. Their names begin with the prefix of the
	// directory, see [Space.Prefix]. For example, in the space acme, the server "files" has
	// the name "acme-files".
	Servers []mcptool.Server
	// Hash is a hash of all files that can affect what runs.
	Hash string

	skills  string                            // directory of the skills, or empty
	unread  []skill.Problem                   // skills that could not be loaded
	own     map[string][]*declare.Declaration // hooks that agents declare, by agent
	broken  map[string]error                  // mistakes in these hooks, by agent
	written map[string]bool                   // files that hooks write with save_json
	faults  error
	read    contents
	foreign *Foreign // set for a directory of another agent
	scripts []string // programs elsewhere of hooks that were written for another agent, relative to Dir
}

// Load reads a directory and runs nothing. A space must have a manifest. Directories of
// projects and operators need none.
//
// The error joins a [Problem] for each mistake. Load then also returns the parts without
// mistakes, for listings. A host does not install them.
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
		p.addf(dir, 0, "cannot load this directory: %s", reason(err))
		return s.faulty(p)
	}
	s.Dir = full
	if kind == hook.OriginSpace {
		s.Manifest = readManifest(full, p)
		s.Origin.Name = s.Manifest.ID
	}
	// The hash must match the files that were read. So the files are hashed before and
	// after.
	before, err := readContents(coverage{dir: full, parts: parts}, nil)
	if err != nil {
		p.add(full, err)
		return s.faulty(p)
	}
	s.loadHooks(p)
	s.loadAgents(p)
	s.checkScripts(p)
	s.loadSkills()
	s.loadServers(p)
	if s.read, err = readContents(s.coverage(), before); err != nil {
		p.add(full, err)
	} else if !before.same(s.read.without(s.scripts)) {
		p.addf(full, 0, "the files changed while they were loaded: load the directory again")
	}
	s.Hash = s.read.hash()
	return s.faulty(p)
}

// faulty records the mistakes. A space with mistakes cannot be installed or trusted.
func (s *Space) faulty(p *problems) (*Space, error) {
	s.faults = p.err()
	return s, s.faults
}

// Empty reports whether the directory has no hooks, agents, skills and servers.
func (s *Space) Empty() bool {
	return len(s.Hooks) == 0 && len(s.Agents) == 0 && s.skills == "" && len(s.Servers) == 0
}

// Label returns a name for people: "space acme", "project" or "operator".
func (s *Space) Label() string {
	o := hook.Origin{Kind: s.Origin.Kind, Name: s.Origin.Name}
	return o.String()
}

// Prefix returns the prefix of the space's hook ids.
func (s *Space) Prefix() string {
	if s.foreign != nil {
		return s.Origin.Name
	}
	switch s.Origin.Kind {
	case hook.OriginSpace:
		return s.Manifest.ID
	case hook.OriginProject:
		return "project"
	default:
		return ""
	}
}

// Needs returns the names of the grants that the hooks and servers need, in order.
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

// Skills returns a source with the skills in skills/, or nil. In a space, the ids of skills
// begin with the space's id.
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
// be installed, because a skill is text for the model, never a gate.
func (s *Space) SkillProblems() []skill.Problem { return slices.Clone(s.unread) }

// AgentHooks returns the hooks that an agent of the space declares.
func (s *Space) AgentHooks(agent string) []*declare.Declaration { return slices.Clone(s.own[agent]) }

// all returns all hooks, including those of agents.
func (s *Space) all() []*declare.Declaration {
	all := slices.Clone(s.Hooks)
	for _, a := range s.Agents {
		all = append(all, s.own[a.Name]...)
	}
	return all
}

// Programs returns the hooks that run a program or call a webhook, including those of
// agents.
func (s *Space) Programs() []*declare.Declaration {
	return slices.DeleteFunc(s.all(), func(d *declare.Declaration) bool { return d.Kind == hook.HandlerAction })
}

// within returns the path of an entry of the directory. It returns false if the entry does
// not exist. It also returns false, and adds a problem, if the entry is a link.
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
		p.addf(full, 0, "this is a link: replace it by a copy")
		return "", false
	}
	return full, true
}

// directory returns the path of a subdirectory. It returns false if the subdirectory does
// not exist or is not a directory.
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
	for _, d := range s.Hooks {
		s.coverNamed(d)
	}
}

// coverNamed makes trust cover the files that a hook in the dialect of another agent names.
// The command of such a hook runs in the project.
func (s *Space) coverNamed(d *declare.Declaration) {
	if d.Dialect == nil {
		return
	}
	project := s.Dir
	if s.Origin.Kind == hook.OriginProject {
		project = filepath.Dir(s.Dir)
	}
	for _, name := range namedfile.Find(project, "", d.Argv) {
		s.cover(name)
	}
}

// Gates returns the hooks in hooks/ whose phase is a gate that fails closed by default, in
// the form "phase id", sorted. It leaves out hooks that are disabled or in shadow mode.
func (s *Space) Gates() []string {
	var gates []string
	for _, d := range s.Hooks {
		if isGate(d) && (!d.Options.Disabled || d.Replaced) && !d.Options.Shadow {
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
	if s.Origin.Kind == hook.OriginSpace { // outside of a space, an agent with a mistake is omitted and the rest is loaded
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
		for _, d := range hooks {
			s.coverNamed(d)
		}
	}
}

// note records the files that hooks write with save_json.
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

// checkScripts adds a problem for each program that cannot be trusted: a file that hooks
// write, or a file that trust does not cover.
func (s *Space) checkScripts(p *problems) {
	for _, d := range s.all() {
		for _, script := range d.Scripts {
			rel, err := filepath.Rel(s.Dir, script)
			if err != nil || !inParts(rel) {
				p.addf(d.File, d.Line, "trust does not cover the program %s of this hook: move the program into hooks/", script)
				continue
			}
			for name := filepath.ToSlash(rel); name != "."; name = path.Dir(name) {
				if s.written[name] {
					p.addf(d.File, d.Line, "this hook runs the file %s, which a save_json action can change after you trusted it: run a file that no hook writes", filepath.Base(script))
				}
			}
		}
	}
}

// loadSkills finds the directory of the skills. It keeps mistakes in skills separate,
// because they do not make a space unusable.
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
	if s.Origin.Kind != hook.OriginSpace { // outside of a space, the program itself reads the skills of all directories
		return
	}
	for _, f := range skill.NewCatalog(context.Background(), skill.Dir(dir)).Problems() {
		if f.Kind == skill.NotLoaded {
			s.unread = append(s.unread, f)
		}
	}
}

// needs returns the names of the grants that a hook needs.
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

// label returns the id of a hook with the prefix of its directory.
func label(d *declare.Declaration, prefix string) string {
	if prefix != "" {
		return fmt.Sprintf("%s/%s", prefix, d.ID)
	}
	return d.ID
}
