package toolbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/near"
)

// place is a directory that the file tools may use.
type place struct {
	root *os.Root
	dir  string // the absolute path
	also string // the absolute path without symbolic links
}

func newPlace(root *os.Root) *place {
	p := &place{root: root, dir: root.Name()}
	if abs, err := filepath.Abs(p.dir); err == nil {
		p.dir = abs
	}
	p.also = p.dir
	if direct, err := filepath.EvalSymlinks(p.dir); err == nil {
		p.also = direct
	}
	return p
}

// inside returns an absolute path relative to the place. The bool is false if the path is
// outside.
func (p *place) inside(name string) (string, bool) {
	for _, dir := range []string{p.dir, p.also} {
		rel, err := filepath.Rel(dir, name)
		if err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel), true
		}
	}
	return "", false
}

// spot is a path in a place.
type spot struct {
	place *place
	rel   string // relative to the place; locate has resolved symbolic links; "." is the place itself
	shown string // the path for messages
}

// id identifies the file, even if it is reached by different paths.
func (s spot) id() string { return s.place.also + "\x00" + s.rel }

// within returns the spot of a path below this one. It does not access files.
func (s spot) within(rel string) spot {
	return spot{s.place, path.Join(s.rel, rel), path.Join(s.shown, rel)}
}

// places are directories of the file tools. It is safe for concurrent use.
type places struct {
	mu  sync.Mutex
	all []*place // replaced, and never changed
}

func (l *places) list() []*place {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

func (l *places) add(p *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(slices.Clip(l.all), p)
}

// maxLinks is the maximum number of symbolic links in a path.
const maxLinks = 40

// locate resolves a path. The file may change before it is opened, but os.Root guarantees
// that nothing outside is opened.
func (f *files) locate(name string) (spot, error) {
	if name == "" {
		return spot{}, failf(belay.ClassInvalid, "The path is empty.")
	}
	if strings.ContainsRune(name, 0) {
		return spot{}, failf(belay.ClassInvalid, "The path %q has a zero byte in it.", name)
	}
	at := spot{place: f.project}
	if filepath.IsAbs(name) {
		found := false
		for _, p := range append([]*place{f.project}, f.extra.list()...) {
			if at.rel, found = p.inside(filepath.Clean(name)); found {
				at.place = p
				break
			}
		}
		if !found {
			return spot{}, f.outside(name)
		}
	} else {
		at.rel = path.Clean(filepath.ToSlash(name))
		if !filepath.IsLocal(at.rel) {
			return spot{}, f.outside(name)
		}
	}
	at.shown = at.rel
	if at.place != f.project {
		at.shown = path.Join(filepath.ToSlash(at.place.dir), at.rel)
	}
	rel, err := at.place.resolve(at.rel)
	if err != nil {
		return spot{}, f.explain(at, err)
	}
	at.rel = rel
	return at, nil
}

// errEscapes means that a symbolic link leads out of the place.
var errEscapes = errors.New("path escapes from parent")

// escapes reports whether an error means that a path leads out of its root. Package os
// does not export its error for this, so escapes compares the text.
func escapes(err error) bool {
	return errors.Is(err, errEscapes) || err != nil && strings.HasSuffix(err.Error(), errEscapes.Error())
}

// resolve follows the symbolic links in a clean path, as far as the path exists. Unlike
// os.Root, it also follows an absolute link that leads back into the place.
func (p *place) resolve(rel string) (string, error) {
	done := "."
	todo := strings.Split(rel, "/")
	for links := 0; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			if done == "." {
				return "", errEscapes
			}
			done = path.Dir(done)
			continue
		}
		next := path.Join(done, name)
		info, err := p.root.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			return path.Join(append([]string{next}, todo...)...), nil
		}
		if err != nil {
			return "", fmt.Errorf("resolve the path: %w", err)
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", errors.New("too many levels of symbolic links")
		}
		target, err := p.root.Readlink(next)
		if err != nil {
			return "", fmt.Errorf("follow: %w", err)
		}
		if filepath.IsAbs(target) {
			inside, ok := p.inside(filepath.Clean(target))
			if !ok {
				return "", errEscapes
			}
			target, done = inside, "."
		}
		todo = append(strings.Split(filepath.ToSlash(target), "/"), todo...)
	}
	return done, nil
}

// outside returns the failure for a path that leads out of the project. It shows the name
// of the project, but not where the project is.
func (f *files) outside(name string) error {
	return failf(belay.ClassDenied, "%q is outside the project %q. This tool works inside the project only: give a path relative to it, such as \"docs/notes.md\".",
		name, filepath.Base(f.project.dir))
}

// open opens a regular file for reading. It rejects everything else, and does not block
// on a pipe or a device.
func (s spot) open() (*os.File, fs.FileInfo, error) {
	f, err := s.place.root.OpenFile(s.rel, os.O_RDONLY|nonblocking, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open: %w", err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = failf(belay.ClassInvalid, "%q is a directory: use list to see its content.", s.shown)
	case !info.Mode().IsRegular():
		err = failf(belay.ClassInvalid, "%q is not a regular file but a %s.", s.shown, kindOf(info.Mode()))
	}
	if err != nil {
		_ = f.Close() // only read, so an error does not matter
		return nil, nil, err
	}
	return f, info, nil
}

// openDir opens a directory. It rejects everything else, and does not block.
func (p *place) openDir(rel string) (*os.File, error) {
	f, err := p.root.OpenFile(rel, os.O_RDONLY|nonblocking|directoryOnly, 0)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	return f, nil
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	default:
		return "special file"
	}
}

// resembling returns a suggestion of existing files with a similar name, or "".
func (s spot) resembling() string {
	dir, err := s.place.openDir(path.Dir(s.rel))
	if err != nil {
		return ""
	}
	defer func() { _ = dir.Close() }()         // only read, so an error does not matter
	names, _ := dir.Readdirnames(maxResembled) // on an error, use the names that were read
	found := near.Names(path.Base(s.rel), names, 3)
	if len(found) == 0 {
		return ""
	}
	for i, name := range found {
		found[i] = inText(path.Join(path.Dir(s.shown), name))
	}
	return ": did you mean " + strings.Join(found, " or ") + "?"
}

// maxResembled is how many names resembling compares.
const maxResembled = 10_000
