package toolbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"
)

// walker visits the files of a directory and its subdirectories, sorted by name. It does
// not follow symbolic links. It skips .git and unreadable directories. Unless all is set,
// it also skips files that .gitignore excludes.
type walker struct {
	place *place
	all   bool
	// enter reports whether to enter a directory. Nil means that all are entered.
	enter func(dir string) bool
	// visit is called for each entry. A directory comes before its content.
	visit func(entry) error
}

type entry struct {
	rel  string // relative to the place
	mode fs.FileMode
}

// walk visits everything below a directory, but not the directory itself. The directory
// is walked even if .gitignore excludes it, because the caller named it.
func (w *walker) walk(ctx context.Context, dir string) error {
	var rules *ignores
	if !w.all {
		rules = w.rulesOf(path.Join(".git", "info", "exclude"), ".", nil)
		for above := range parents(dir) {
			rules = w.rulesOf(path.Join(above, ".gitignore"), above, rules)
		}
	}
	return w.in(ctx, dir, rules)
}

// Files lists the files below a directory, in the order of their paths and at most this many. It
// leaves out what .gitignore files exclude.
func Files(ctx context.Context, root *os.Root, most int) ([]string, error) {
	var paths []string
	full := errors.New("full")
	w := &walker{place: newPlace(root), visit: func(e entry) error {
		if e.mode.IsRegular() {
			paths = append(paths, e.rel)
		}
		if len(paths) >= most {
			return full
		}
		return nil
	}}
	if err := w.walk(ctx, "."); err != nil && !errors.Is(err, full) {
		return paths, err
	}
	return paths, nil
}

// parents yields the directories above a path, the top directory first.
func parents(dir string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if dir == "." || !yield(".") {
			return
		}
		for i, c := range dir {
			if c == '/' && !yield(dir[:i]) {
				return
			}
		}
	}
}

// rulesOf reads an ignore file, if it exists and can be read. Like git, it does not
// follow a link.
func (w *walker) rulesOf(name, dir string, above *ignores) *ignores {
	if info, err := w.place.root.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return above
	}
	f, _, err := spot{place: w.place, rel: name}.open()
	if err != nil {
		return above
	}
	defer func() { _ = f.Close() }() // only read, so an error does not matter
	rules, err := parseIgnore(f, dir, above)
	if err != nil {
		return above
	}
	return rules
}

func (w *walker) in(ctx context.Context, dir string, rules *ignores) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	entries, err := w.entries(dir)
	if err != nil {
		return err
	}
	if !w.all && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".gitignore" }) {
		rules = w.rulesOf(path.Join(dir, ".gitignore"), dir, rules)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if e.Name() == ".git" || rules.ignored(name, e.IsDir()) {
			continue
		}
		if err := w.visit(entry{name, e.Type()}); err != nil {
			return err
		}
		if !e.IsDir() || w.enter != nil && !w.enter(name) {
			continue
		}
		if err := w.in(ctx, name, rules); unusable(err) {
			continue
		} else if err != nil {
			return err
		}
	}
	return nil
}

// unusable reports whether an error means that a directory was removed or replaced, or
// cannot be read.
func unusable(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrPermission) || escapes(err)
}

// entries reads one directory. Do not call Info on the entries: Info opens files by name
// and so bypasses the root.
func (w *walker) entries(dir string) ([]fs.DirEntry, error) {
	f, err := w.place.openDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read, so an error does not matter
	entries, err := f.ReadDir(-1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read: %w", err)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// directory returns the directory that a call names. Defaults to the project.
func (f *files) directory(name string) (spot, error) {
	at, err := f.locate(cmp.Or(name, "."))
	if err != nil {
		return spot{}, err
	}
	info, err := at.place.root.Lstat(at.rel)
	if err != nil {
		return spot{}, f.explain(at, err)
	}
	if !info.IsDir() {
		return spot{}, notDirectoryError{at, info}
	}
	return at, nil
}

// notDirectoryError means that a call named a file instead of a directory.
type notDirectoryError struct {
	at   spot
	info fs.FileInfo
}

func (e notDirectoryError) Error() string { return e.at.shown + " is not a directory" }
