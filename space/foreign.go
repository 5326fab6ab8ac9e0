package space

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/mcptool"
)

// Foreign is a directory of another coding agent, such as .claude, or a plugin for such an
// agent. Only its hooks and MCP servers are used. The program that loads the directory knows
// its form.
type Foreign struct {
	// Dir is the directory.
	Dir string
	// Origin is OriginProject for a directory in the project, or else OriginSpace. Its name
	// is the prefix of the hook ids.
	Origin hook.Origin
	// Private means that the directory belongs to the user and not to a project or a
	// plugin. After trust, its commands run without a sandbox, as the user's own do.
	Private bool
	// Strict makes gates deny while the directory is not trusted. By default, hooks of a
	// directory that was never trusted do not run.
	Strict bool
	// Files are the files that declare hooks, and Dirs are directories with their programs.
	// Trust covers them. They are relative to Dir.
	Files, Dirs []string
	// Covers returns the part of a file in Files that trust covers, or nil if there is
	// none. Other agents change other parts of their files often.
	Covers func(name string, text []byte) []byte
	// Read reads the hooks. Trust also covers the scripts of its declarations.
	Read func() ([]*declare.Declaration, error)
	// Servers reads the MCP servers, and returns the programs in the directory that they
	// name. Trust also covers these programs. It may be nil.
	Servers func() (servers []mcptool.Server, programs []string, err error)
	// Trust is the command with which a person trusts the directory.
	Trust string
}

// LoadForeign reads the hooks of a directory of another agent, and runs nothing. A link
// counts as the file to which it leads.
func LoadForeign(f *Foreign) (*Space, error) {
	p := new(problems)
	s := &Space{Dir: f.Dir, Origin: f.Origin, foreign: f, written: make(map[string]bool)}
	if f.Origin.Kind == hook.OriginSpace {
		s.Manifest.ID = f.Origin.Name
	}
	full, err := filepath.EvalSymlinks(f.Dir)
	if err != nil {
		p.addf(f.Dir, 0, "cannot load this directory: %s", reason(err))
		return s.faulty(p)
	}
	s.Dir = full
	// The hash must match the files that were read. So the files are hashed before and
	// after.
	before, err := readContents(coverage{dir: full, parts: f.Files, foreign: f}, nil)
	if err != nil {
		p.add(full, err)
		return s.faulty(p)
	}
	if s.Hooks, err = f.Read(); err != nil {
		p.declared(full, err)
	}
	for _, d := range s.Hooks {
		for _, script := range d.Scripts {
			s.cover(script)
		}
	}
	if f.Servers != nil {
		servers, programs, err := f.Servers()
		if err != nil {
			p.declared(full, err)
		}
		for _, program := range programs {
			s.cover(program)
		}
		for i := range servers {
			servers[i].Sampling = false // only the user's own files may switch it on
		}
		s.Servers = servers
	}
	if s.read, err = readContents(s.coverage(), nil); err != nil {
		p.add(full, err)
	} else if !s.read.same(before) {
		p.addf(full, 0, "the files changed while they were loaded: load the directory again")
	}
	s.Hash = s.read.hash()
	return s.faulty(p)
}

// again loads the directory again.
func (s *Space) again() (*Space, error) {
	if s.foreign != nil {
		return LoadForeign(s.foreign)
	}
	return Load(s.Dir, s.Origin.Kind)
}

// cover adds a script to what trust covers.
func (s *Space) cover(script string) {
	if actual, err := filepath.EvalSymlinks(filepath.Dir(script)); err == nil {
		script = filepath.Join(actual, filepath.Base(script)) // a link itself stays: its target is read
	}
	rel, err := filepath.Rel(s.Dir, script)
	if err != nil {
		return // another drive: nothing below this directory changes with the script
	}
	rel = filepath.ToSlash(rel)
	dirs := parts
	if s.foreign != nil {
		dirs = s.foreign.Dirs
	}
	for _, dir := range dirs {
		if strings.HasPrefix(rel, dir+"/") && (s.foreign == nil || !leftOut(rel)) {
			return
		}
	}
	if !slices.Contains(s.scripts, rel) {
		s.scripts = append(s.scripts, rel)
	}
}

// Foreign returns the description of a directory of another agent, or nil.
func (s *Space) Foreign() *Foreign { return s.foreign }

// leftOut reports whether trust does not cover a file in a directory of another agent,
// because programs write it: logs and caches.
func leftOut(name string) bool {
	if slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool {
		return part == "__pycache__" || part == ".DS_Store" || part == ".git" || part == ".cache"
	}) {
		return true
	}
	return slices.Contains([]string{".log", ".jsonl", ".pid", ".lock", ".tmp", ".pyc"}, strings.ToLower(filepath.Ext(name)))
}

// coverage says which files of a directory trust covers.
type coverage struct {
	dir   string
	parts []string
	// skip are files that hooks write. They are left out.
	skip map[string]bool
	// foreign is set for a directory of another agent.
	foreign *Foreign
	named   []string // scripts of hooks of another agent, which are never left out
}

// coverage returns which files trust covers.
func (s *Space) coverage() coverage {
	if f := s.foreign; f != nil {
		return coverage{dir: s.Dir, parts: slices.Concat(f.Files, f.Dirs, s.scripts), foreign: f, named: s.scripts}
	}
	return coverage{dir: s.Dir, parts: slices.Concat(parts, s.scripts), skip: s.written}
}

// omits reports whether a file is left out.
func (c *coverage) omits(name string) bool {
	return c.skip[name] || c.foreign != nil && leftOut(name) && !slices.Contains(c.named, name)
}

// part returns the part of a text that trust covers.
func (c *coverage) part(name string, text []byte) []byte {
	if c.foreign != nil && c.foreign.Covers != nil && slices.Contains(c.foreign.Files, name) {
		return c.foreign.Covers(name, text)
	}
	return text
}

// follow returns the file to which a link of another agent's directory leads.
func follow(full string) (string, fs.FileInfo, error) {
	target, err := filepath.EvalSymlinks(full)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil, &Problem{full, 0, "the target of this link does not exist: remove the link"}
		}
		return "", nil, &Problem{full, 0, reason(err)}
	}
	info, err := os.Stat(target)
	if err != nil {
		return "", nil, &Problem{full, 0, reason(err)}
	}
	if !info.Mode().IsRegular() {
		return "", nil, &Problem{full, 0, "this link does not lead to a file, so trust cannot cover it: replace the link by a copy"}
	}
	return target, info, nil
}
