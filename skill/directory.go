package skill

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay/internal/frontmatter"
)

// The limits of a directory.
const (
	deepest   = 4       // how many levels below the directory are searched
	mostFiles = 100_000 // how many skills the directory may have
)

// settled is how old a file's modification time must be before Belay trusts that time.
// The reason: two changes within one tick of the file system's clock have the same time.
const settled = 2 * time.Second

// skillFile is the file of a skill in the Agent Skills layout.
const skillFile = "SKILL.md"

// Directory is a source of skills in files. Make one with [Dir] or [FS].
//
// Each directory below it with a file SKILL.md is a skill. The other Markdown files in
// that directory are the skill's sections. The files in its directories scripts,
// references and assets are its resources. Markdown and YAML files at the top level are
// skills too, without sections. If there is a SKILL.md at the top level, the whole
// directory is one skill. But if that SKILL.md is invalid, the directories below are
// searched for skills.
//
// A file is read again only if its size or modification time has changed.
type Directory struct {
	name string
	open func() (tree, error)

	mu    sync.Mutex
	files map[string]*file // by path
	byID  map[string]*file
}

// Dir returns a source of the skills in a directory. If the directory does not exist, the
// source has no skills. Links that lead out of the directory are rejected. This is also
// true for sections and resources.
func Dir(dir string) *Directory {
	return &Directory{name: dir, open: func() (tree, error) { return openRoot(dir) }}
}

// FS returns a source of the skills in an fs.FS, such as embedded files. The name is
// shown in problems. The fs.FS decides where links may lead: [os.Root] rejects links that
// lead out of it, [os.DirFS] does not.
func FS(name string, files fs.FS) *Directory {
	return &Directory{name: name, open: func() (tree, error) { return fsTree{files, name}, nil }}
}

var _ Source = (*Directory)(nil)

// String returns the directory, or the name that was given to [FS].
func (d *Directory) String() string { return d.name }

// file is the result of reading one file that may be a skill. It is immutable.
type file struct {
	rel     string // the path of the file
	dir     string // the skill's own directory, or "" for a skill that is a single file
	size    int64
	changed time.Time
	fresh   bool // too new to trust its time, see settled
	skill   *Skill
	problem *Problem
	outside []outsider // links to sections or resources that lead out of the directory
}

// List returns the skills, sorted by path.
func (d *Directory) List(ctx context.Context) ([]*Skill, error) {
	t, err := d.open()
	if errors.Is(err, fs.ErrNotExist) {
		d.keep(nil)
		return []*Skill{}, nil
	}
	if err != nil {
		return nil, &Problem{Kind: NotLoaded, Path: d.name, Message: fileMessage(err), Err: err}
	}
	defer t.close()
	files, err := d.walk(ctx, t)
	if err != nil {
		return nil, &Problem{Kind: NotLoaded, Path: d.name, Message: fileMessage(err), Err: err}
	}
	skills := []*Skill{}
	var problems []Problem
	for i, f := range files {
		if i == mostFiles {
			problems = append(problems, Problem{Kind: NotLoaded, Path: d.name, Message: fmt.Sprintf("there are more than %d skills: the rest is left out", mostFiles)})
			break
		}
		switch {
		case f.problem != nil:
			problems = append(problems, *f.problem)
		case f.skill != nil:
			skills = append(skills, f.skill)
			for _, o := range f.outside {
				problems = append(problems, Problem{Kind: NotLoaded, Path: t.shown(o.rel), Line: 1, Skill: f.skill.Name, Message: o.message(), Err: o.err})
			}
		}
	}
	d.keep(files)
	return skills, joined(problems)
}

// keep stores the files for later calls of Read and walk.
func (d *Directory) keep(files []*file) {
	byPath, byID := make(map[string]*file, len(files)), make(map[string]*file, len(files))
	for _, f := range files {
		byPath[f.rel] = f
		if f.skill != nil && byID[f.skill.ID] == nil {
			byID[f.skill.ID] = f
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files, d.byID = byPath, byID
}

// walk reads the files that are skills, sorted by path. It uses one goroutine per
// processor, at most 8. They end before walk returns.
func (d *Directory) walk(ctx context.Context, t tree) ([]*file, error) {
	entries, err := t.readDir(".")
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	known := d.files
	d.mu.Unlock()
	var broken []*file // the SKILL.md at the top level, if it is invalid
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == skillFile }) {
		whole, err := filepath.Abs(d.name)
		if err != nil {
			whole = d.name
		}
		v := visit{t: t, known: known}
		if own := v.skill(".", filepath.Base(whole), skillFile); own != nil {
			if own.problem == nil {
				return []*file{own}, nil
			}
			broken = []*file{own}
		}
		// The other files at the top level may be sections of the invalid skill, so they
		// are not loaded as skills. Directories are still searched.
		entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Type().IsRegular() || e.Name() == skillFile })
	}
	found := make([][]*file, len(entries))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 8, len(entries)) {
		workers.Go(func() {
			v := visit{t: t, known: known}
			for {
				i := int(next.Add(1)) - 1
				if i >= len(entries) || ctx.Err() != nil {
					return
				}
				found[i] = v.entry(entries[i])
			}
		})
	}
	workers.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	files := slices.Concat(broken, slices.Concat(found...))
	slices.SortFunc(files, func(a, b *file) int { return strings.Compare(a.rel, b.rel) })
	return files, nil
}

// visit is the state of one goroutine of walk.
type visit struct {
	t      tree
	known  map[string]*file
	buffer []byte
}

// entry reads a file or a directory at the top level.
func (v *visit) entry(e fs.DirEntry) []*file {
	name := e.Name()
	if strings.HasPrefix(name, ".") || name == "node_modules" {
		return nil
	}
	isDir, below := e.IsDir(), 1
	if e.Type()&fs.ModeSymlink != 0 {
		info, err := v.t.stat(name)
		if err != nil {
			return []*file{v.failed(name, err)}
		}
		isDir, below = info.IsDir(), deepest // no search below links: they may form a loop
	}
	if isDir {
		return v.directory(name, below)
	}
	switch path.Ext(name) {
	case ".md", ".yaml", ".yml":
		if f := v.flat(name); f != nil {
			return []*file{f}
		}
	}
	return nil
}

// directory reads a directory. The directory is a skill, or contains skills at a lower
// level.
func (v *visit) directory(rel string, level int) []*file {
	if f := v.skill(rel, path.Base(rel), path.Join(rel, skillFile)); f != nil {
		return []*file{f}
	}
	entries, err := v.t.readDir(rel)
	if err != nil {
		return []*file{v.failed(rel, err)}
	}
	for _, e := range entries {
		if strings.EqualFold(e.Name(), skillFile) && !e.IsDir() {
			if f := v.skill(rel, path.Base(rel), path.Join(rel, e.Name())); f != nil {
				return []*file{f}
			}
		}
	}
	if level >= deepest {
		return nil
	}
	var files []*file
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && e.Name() != "node_modules" {
			files = append(files, v.directory(path.Join(rel, e.Name()), level+1)...)
		}
	}
	return files
}

func (v *visit) failed(rel string, err error) *file {
	return &file{rel: rel, fresh: true, problem: &Problem{Kind: NotLoaded, Path: v.t.shown(rel), Line: 1, Message: fileMessage(err), Err: err}}
}

// unchanged returns the stored result for a file, or nil if the file must be read again.
func (v *visit) unchanged(rel string) *file {
	old := v.known[rel]
	if old == nil || old.fresh {
		return nil
	}
	info, err := v.t.stat(rel)
	if err != nil || info.Size() != old.size || !info.ModTime().Equal(old.changed) || !info.Mode().IsRegular() {
		return nil
	}
	return old
}

// skill reads the SKILL.md of a skill. It returns nil if the file does not exist.
func (v *visit) skill(dir, name, rel string) *file {
	return v.read(rel, dir, func(shown, text string) (*Skill, error) {
		doc, err := frontmatter.Parse(text)
		if err != nil {
			return nil, err
		}
		if called := path.Base(rel); called != skillFile {
			doc.Notes = append(doc.Notes, frontmatter.Note{Line: 1, Message: fmt.Sprintf("the file is called %s: call it %s", called, skillFile)})
		}
		return readSkill(shown, doc, name, true)
	})
}

// flat reads a skill that is a single file. It returns nil for files that are no skills,
// see forReaders.
func (v *visit) flat(rel string) *file {
	ext := path.Ext(rel)
	stem := strings.TrimSuffix(rel, ext)
	f := v.read(rel, "", func(shown, text string) (*Skill, error) {
		doc, err := parserOf(ext)(text)
		if err != nil || !doc.Found && forReaders(stem) {
			return nil, err
		}
		if noBody(doc, ext) {
			return nil, bad(1, noBodyMessage)
		}
		s, err := readSkill(shown, doc, stem, false)
		if s != nil {
			s.Body = "" // read when it is needed
		}
		return s, err
	})
	return f
}

// parserOf returns the parser for a skill file with this extension.
func parserOf(ext string) func(string) (*frontmatter.Document, error) {
	if ext == ".md" {
		return frontmatter.Parse
	}
	return frontmatter.ParseYAMLWithBody
}

const noBodyMessage = "there is no body: a skill in YAML has its text below the key body, or after frontmatter between two lines ---"

// noBody reports whether a single-file skill in YAML has no text.
func noBody(doc *frontmatter.Document, ext string) bool {
	if ext == ".md" || doc.BodyLine > 0 {
		return false
	}
	body := doc.Field("body")
	return body == nil || strings.TrimSpace(body.Text) == ""
}

// forReaders reports whether a file without front matter is documentation for people,
// such as a README, and not a skill.
func forReaders(stem string) bool {
	switch strings.ToLower(stem) {
	case "readme", "license", "changelog", "contributing", "agents", "claude", "gemini", "code_of_conduct", "security", "notice", "todo", "index":
		return true
	}
	return false
}

// read reads a file if it has changed, and makes a skill of it. It returns nil if the
// file does not exist.
func (v *visit) read(rel, dir string, parse func(shown, text string) (*Skill, error)) *file {
	if old := v.unchanged(rel); old != nil {
		return old
	}
	now := time.Now()
	text, info, buffer, err := readText(v.t, rel, v.buffer)
	v.buffer = buffer
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return v.failed(rel, err)
	}
	f := &file{rel: rel, dir: dir, size: info.Size(), changed: info.ModTime()}
	f.fresh = !f.changed.IsZero() && now.Sub(f.changed) < settled
	s, err := parse(v.t.shown(rel), text)
	if err != nil {
		f.problem = &Problem{Kind: NotLoaded, Path: v.t.shown(rel), Line: 1, Message: err.Error(), Err: err}
		if e, ok := errors.AsType[*frontmatter.Error](err); ok {
			f.problem.Line, f.problem.Message = e.Line, e.Message
		}
		if e, ok := errors.AsType[*fieldError](err); ok {
			f.problem.Line, f.problem.Message = e.line, e.message
		}
		return f
	}
	if s != nil {
		if s.ID == "" {
			s.ID = s.Name
		}
		if old := v.known[rel]; old != nil && old.skill != nil && same(old.skill, s) {
			s = old.skill
		}
	}
	f.skill = s
	if s != nil && dir != "" {
		f.outside = besides(v.t, dir, path.Base(rel)).outside
	}
	return f
}
