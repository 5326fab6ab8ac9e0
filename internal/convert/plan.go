package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/wholefile"
)

// Plan is what an import writes, and what it cannot translate.
type Plan struct {
	// Files are the files that the import creates or changes.
	Files []*File
	// Same are files that have the right content already.
	Same []string
	// Notes say what was not translated, or in another way.
	Notes []Note
	// Read is how many things of the agent were found.
	Read int
}

// File is a file that an import writes.
type File struct {
	Path string
	// Before is the text of the file now. It is nil if there is no such file.
	Before, After []byte
	// Replaces means that the text before would be lost. Otherwise the import only adds to
	// the file.
	Replaces bool
}

// Note is something that was not translated, or in another way.
type Note struct {
	// From is the file of the other agent.
	From string
	// Message says what happened to it, and what to do.
	Message string
}

// Options say what to import.
type Options struct {
	Agent dialect.Vendor
	// User means the user's own setup in the home directory instead of the project's.
	User bool
}

// importer is the state while a setup is read.
type importer struct {
	*Options

	settings *config.Loaded
	base     string // the directory with the agent's files: the project or the home directory
	target   string // the directory for Belay's files
	rules    []string
	guards   []string // YAML
	servers  map[string]server
	plan     *Plan
	known    map[string]bool // the agent's files that were looked at, by path
}

// New reads the setup of an agent.
func New(ctx context.Context, s *config.Loaded, o *Options) (*Plan, error) {
	im := &importer{Options: o, settings: s, base: s.Project, target: assembly.ProjectPlace(s), plan: new(Plan), servers: make(map[string]server), known: make(map[string]bool)}
	if o.User {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("find the home directory: %w", err)
		}
		if s.UserDir == "" {
			return nil, errors.New("there is no directory for your own settings: set HOME")
		}
		im.base, im.target = home, s.UserDir
	}
	read := map[dialect.Vendor]func(context.Context){
		dialect.ClaudeCode: im.claude, dialect.Codex: im.codex, dialect.GeminiCLI: im.gemini, dialect.Cursor: im.cursor, dialect.Copilot: im.copilot,
	}[o.Agent]
	if read == nil {
		return nil, fmt.Errorf("there is no import for the agent %q", o.Agent)
	}
	read(ctx)
	im.writeServers()
	im.writeRules()
	slices.SortStableFunc(im.plan.Files, func(a, b *File) int { return strings.Compare(a.Path, b.Path) })
	return im.plan, nil
}

// notef adds a note about a file of the other agent.
func (im *importer) notef(from, format string, args ...any) {
	n := Note{From: im.shown(from), Message: fmt.Sprintf(format, args...)}
	if !slices.Contains(im.plan.Notes, n) {
		im.plan.Notes = append(im.plan.Notes, n)
	}
}

// shown returns a path as messages name it.
func (im *importer) shown(path string) string {
	if !filepath.IsAbs(path) {
		return path
	}
	return assembly.ShownPath(im.settings, path)
}

// at returns the path of a file of the other agent, and remembers that it was looked at.
func (im *importer) at(elem ...string) string {
	path := filepath.Join(append([]string{im.base}, elem...)...)
	im.known[path] = true
	return path
}

// read returns the text of a file of the other agent. It returns false if there is none. A
// file that cannot be read is a note.
func (im *importer) read(elem ...string) (path, text string, ok bool) {
	path = im.at(elem...)
	text, ok = im.readFile(path)
	return path, text, ok
}

// mostText is the size of the largest file that is read.
const mostText = 1 << 20

func (im *importer) readFile(path string) (string, bool) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = errors.New("it is not a regular file")
	case info.Size() > mostText:
		err = fmt.Errorf("it is larger than %d MiB", mostText>>20)
	case !im.inside(path):
		err = errors.New("it is a link that leads out of the directory")
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	im.plan.Read++
	if err != nil {
		im.notef(path, "not translated: it cannot be read: %v", err)
		return "", false
	}
	return string(bytes.TrimPrefix(text, []byte("\ufeff"))), true
}

// inside reports whether a file of a project is in the project, after all links. A project
// must not get the content of other files by a link.
func (im *importer) inside(path string) bool {
	actual, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(assembly.RealDir(im.base), actual)
	return im.User || err == nil && filepath.IsLocal(rel)
}

// put adds a file to the plan.
func (im *importer) put(path string, text []byte, adds bool) {
	before, err := os.ReadFile(path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		im.notef(path, "not written: it cannot be read: %v", err)
	case err == nil && bytes.Equal(before, text):
		im.plan.Same = append(im.plan.Same, path)
	default:
		for _, f := range im.plan.Files {
			if f.Path == path {
				im.notef(path, "not written: two files of %s have the same name in Belay", im.Agent.Title())
				return
			}
		}
		if err != nil {
			before = nil
		}
		im.plan.Files = append(im.plan.Files, &File{Path: path, Before: before, After: text, Replaces: before != nil && !adds})
	}
}

// rest adds a note for each entry of a directory of the other agent that nothing has looked
// at. ignored are names that have nothing to do with the setup.
func (im *importer) rest(dir string, ignored ...string) {
	entries, err := os.ReadDir(filepath.Join(im.base, dir))
	if err != nil {
		return // there is no such directory
	}
	for _, e := range entries {
		path := filepath.Join(im.base, dir, e.Name())
		if !im.known[path] && !slices.Contains(ignored, e.Name()) {
			im.notef(path, "not translated: Belay does not know this file of %s", im.Agent.Title())
		}
	}
}

// Write writes the files of a plan. It does not replace the text of a file unless force is
// set. A file that has changed since the plan was made is an error.
func (p *Plan) Write(force bool) (written []string, err error) {
	for _, f := range p.Files {
		if f.Replaces && !force {
			continue
		}
		now, err := os.ReadFile(f.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return written, fmt.Errorf("import: %w", err)
		}
		if !bytes.Equal(now, f.Before) {
			return written, fmt.Errorf("import: %s has changed meanwhile: run the command again", f.Path)
		}
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
			return written, fmt.Errorf("import: %w", err)
		}
		mode := fs.FileMode(0o644)
		if info, err := os.Stat(f.Path); err == nil {
			mode = info.Mode().Perm()
		}
		if err := wholefile.Write(f.Path, f.After); err != nil {
			return written, fmt.Errorf("import: %w", err)
		}
		if err := os.Chmod(f.Path, mode); err != nil {
			return written, fmt.Errorf("import: %w", err)
		}
		written = append(written, f.Path)
	}
	return written, nil
}
