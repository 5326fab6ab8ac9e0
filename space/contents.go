package space

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// parts are the files of a directory that can run something, or change what runs. Trust
// covers them. Skills are not included, because they are only text for the model, and the
// floor checks the model's calls.
var parts = []string{manifestFile, "hooks", "agents", mcpFile, "mcp"}

// These are the limits for all files that trust covers, together.
const (
	mostFiles = 4096
	mostBytes = 64 << 20
	mostDepth = 16
)

// contents are the files of a directory that trust covers, by relative path.
type contents map[string]content

// content identifies a file.
type content struct {
	stamp stamp
	// sum identifies the file's type, whether it is executable, and its text or link
	// target.
	sum string
	// young means that the file changed only recently, so that another change might have
	// the same stamp.
	young bool
}

// stamp is the metadata of a file that changes when the file changes.
type stamp struct {
	mode     fs.FileMode
	size     int64
	modified int64
	// changed is the time of the last change of the file or its metadata. Programs cannot
	// set this time. inode shows whether another file has replaced this one. Not every
	// system has these values: then known is false.
	changed, inode int64
	known          bool
}

// hash returns one hash over all files.
func (c contents) hash() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(h, "%d:%s%s\n", len(name), name, c[name].sum)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// youth is the age until which a change counts as recent: see content.young.
const youth = 2 * time.Second

// readContents reads the files of a directory that trust covers. It does not read a file
// again if the file's stamp is the same as in before.
func readContents(c coverage, before contents) (contents, error) {
	w := &walk{coverage: c, before: before, found: make(contents), now: time.Now()}
	for _, part := range c.parts {
		if err := w.look(part, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return w.found, nil
}

type walk struct {
	coverage

	before contents
	found  contents
	bytes  int64
	now    time.Time
}

// look reads a file, or a directory with its contents.
func (w *walk) look(name string, depth int) error {
	full := filepath.Join(w.dir, filepath.FromSlash(name))
	info, err := os.Lstat(full)
	if err != nil {
		return err
	}
	if w.omits(name) && (info.Mode().IsRegular() || w.foreign != nil) {
		return nil
	}
	if !info.IsDir() {
		return w.file(name, full, info)
	}
	if depth == mostDepth {
		return &Problem{full, 0, fmt.Sprintf("directories are nested deeper than %d levels: move the files up", mostDepth)}
	}
	entries, err := os.ReadDir(full)
	if err != nil {
		return &Problem{full, 0, reason(err)}
	}
	for _, e := range entries {
		// If a file disappears during the reading, it counts as missing.
		if err := w.look(path.Join(name, e.Name()), depth+1); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (w *walk) file(name, full string, info fs.FileInfo) error {
	if w.bytes += info.Size(); len(w.found) == mostFiles || w.bytes > mostBytes {
		return &Problem{w.dir, 0, fmt.Sprintf("there are more than %d files or %d MiB in %s: move files that hooks do not need to another directory", mostFiles, mostBytes>>20, strings.Join(w.parts, ", "))}
	}
	now := stampOf(info)
	// The target of a link may change without a change of the link.
	if old, ok := w.before[name]; ok && !old.young && now.known && old.stamp == now && info.Mode()&fs.ModeSymlink == 0 {
		w.found[name] = old
		return nil
	}
	sum, err := w.sumOf(name, full, info)
	if err != nil || sum == "" { // nothing in the file has to do with hooks
		return err
	}
	w.found[name] = content{stamp: now, sum: sum, young: w.now.Sub(time.Unix(0, now.changed)) < youth}
	return nil
}

// sumOf returns a text that identifies a file's content, see content.sum.
func (w *walk) sumOf(name, full string, info fs.FileInfo) (string, error) {
	if info.Mode()&fs.ModeSymlink != 0 && w.foreign != nil {
		var err error
		if full, info, err = follow(full); err != nil {
			return "", err
		}
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		leads, err := staysBelow(w.dir, full)
		if err != nil {
			return "", err
		}
		return " link " + leads, nil
	case !info.Mode().IsRegular():
		return "", &Problem{full, 0, "it is not a regular file: remove it"}
	}
	f, err := os.Open(full)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		return "", &Problem{full, 0, reason(err)}
	}
	defer func() { _ = f.Close() }() // the file was only read
	h := sha256.New()
	if w.foreign != nil {
		text, err := io.ReadAll(io.LimitReader(f, mostBytes))
		if err != nil {
			return "", &Problem{full, 0, reason(err)}
		}
		part := w.part(name, text)
		if part == nil {
			return "", nil
		}
		_, _ = h.Write(part) // a hash returns no error
	} else if _, err := io.Copy(h, io.LimitReader(f, mostBytes)); err != nil {
		return "", &Problem{full, 0, reason(err)}
	}
	return fmt.Sprintf(" %t %x", info.Mode()&0o111 != 0, h.Sum(nil)), nil
}

// staysBelow returns the target of a link. It returns an error if the target does not
// exist, is outside of the directory, or is not covered by trust, because changes there
// would not be noticed.
func staysBelow(dir, link string) (string, error) {
	target, err := os.Readlink(link)
	if err != nil {
		return "", &Problem{link, 0, reason(err)}
	}
	base, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", &Problem{dir, 0, reason(err)}
	}
	end, err := filepath.EvalSymlinks(link)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &Problem{link, 0, "the target of this link does not exist: remove the link"} // another file could appear at the target later
	}
	if err != nil {
		return "", &Problem{link, 0, reason(err)}
	}
	rel, err := filepath.Rel(base, end)
	if err != nil || !filepath.IsLocal(rel) {
		return "", &Problem{link, 0, fmt.Sprintf("this link points outside of %s: replace the link by a copy of the file", dir)}
	}
	if !inParts(rel) {
		return "", &Problem{link, 0, "this link points to a file that trust does not cover: replace the link by a copy of the file"}
	}
	return target, nil
}

// inParts reports whether trust covers a file. rel is its relative path.
func inParts(rel string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return rel == part || strings.HasPrefix(rel, part+string(filepath.Separator)) })
}

// same reports whether c has all files of o, with the same content.
func (c contents) same(o contents) bool {
	for name, file := range o {
		if was, ok := c[name]; !ok || was.sum != file.sum {
			return false
		}
	}
	return true
}

// without returns the contents without some files.
func (c contents) without(names []string) contents {
	rest := maps.Clone(c)
	for _, name := range names {
		delete(rest, name)
	}
	return rest
}

// seal computes the hash of a directory again and again. It reads only files that have
// changed.
type seal struct {
	cover coverage

	mu   sync.Mutex
	last contents
}

func (s *seal) now() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := readContents(s.cover, s.last)
	if err != nil {
		return "", err
	}
	s.last = found
	return found.hash(), nil
}

// textOf returns the text of a file, to show changes. It returns "" if the file is not text
// or is too long.
func (c *coverage) textOf(name string) string {
	text, err := readAtMost(filepath.Join(c.dir, filepath.FromSlash(name)), 64<<10)
	if err != nil || !utf8.Valid(text) {
		return ""
	}
	return string(c.part(name, text))
}
