package skill

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// mostBytes is the maximum size of a file in bytes.
const mostBytes = 1 << 20

// A tree gives access to the files below a directory. Paths are relative to the directory
// and use slashes.
type tree interface {
	open(rel string) (fs.File, error)
	readDir(rel string) ([]fs.DirEntry, error)
	// stat follows links, even out of the directory. Use it only to check whether a file
	// has changed and what a link leads to.
	stat(rel string) (fs.FileInfo, error)
	// inside follows links, and fails if a link leads out of the directory.
	inside(rel string) (fs.FileInfo, error)
	// shown returns the path of a file for people.
	shown(rel string) string
	// place returns the path of a file for the model, or "" if the model cannot open it.
	place(rel string) string
	close()
}

// rootTree is a directory of the file system. It opens no links that lead out of it.
type rootTree struct {
	root  *os.Root
	files fs.FS
	dir   string
}

func openRoot(dir string) (*rootTree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	return &rootTree{root, root.FS(), dir}, nil
}

func (t *rootTree) open(rel string) (fs.File, error) {
	f, err := t.root.OpenFile(rel, os.O_RDONLY|nonblocking, 0)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the file
	}
	return f, nil
}

func (t *rootTree) readDir(rel string) ([]fs.DirEntry, error) {
	return fs.ReadDir(t.files, rel) //nolint:wrapcheck // the caller names the directory
}

func (t *rootTree) stat(rel string) (fs.FileInfo, error) { return os.Stat(t.shown(rel)) }

func (t *rootTree) inside(rel string) (fs.FileInfo, error) {
	return t.root.Stat(rel) //nolint:wrapcheck // the caller names the file
}

func (t *rootTree) shown(rel string) string { return filepath.Join(t.dir, filepath.FromSlash(rel)) }
func (t *rootTree) place(rel string) string { return t.shown(rel) }
func (t *rootTree) close()                  { _ = t.root.Close() } // only read, so an error does not matter

// fsTree is an fs.FS as a tree.
type fsTree struct {
	fs.FS

	name string
}

func (t fsTree) open(rel string) (fs.File, error) {
	return t.Open(rel) //nolint:wrapcheck // the caller names the file
}

func (t fsTree) readDir(rel string) ([]fs.DirEntry, error) {
	return fs.ReadDir(t.FS, rel) //nolint:wrapcheck // the caller names the directory
}

func (t fsTree) stat(rel string) (fs.FileInfo, error) {
	return fs.Stat(t.FS, rel) //nolint:wrapcheck // the caller names the file
}

func (t fsTree) inside(rel string) (fs.FileInfo, error) { return t.stat(rel) } // the FS decides which links it follows
func (t fsTree) shown(rel string) string                { return path.Join(t.name, rel) }
func (t fsTree) place(string) string                    { return "" } // other programs cannot open files of an fs.FS
func (t fsTree) close()                                 {}

// readText reads a file and returns its text and FileInfo. The caller passes the returned
// buffer to the next call, to reuse its memory.
func readText(t tree, rel string, buffer []byte) (text string, info fs.FileInfo, _ []byte, err error) {
	f, err := t.open(rel)
	if err != nil {
		return "", nil, buffer, err
	}
	defer func() { _ = f.Close() }() // only read, so an error does not matter
	info, err = f.Stat()
	switch {
	case err != nil:
		return "", info, buffer, err //nolint:wrapcheck // fileMessage explains it
	case info.IsDir():
		return "", info, buffer, errors.New("it is a directory: make it a file")
	case !info.Mode().IsRegular():
		return "", info, buffer, errors.New("it is not a regular file: replace it by a regular file")
	}
	if need := int(min(info.Size(), mostBytes)) + 1; cap(buffer) < need {
		buffer = make([]byte, max(need, 8<<10))
	}
	n, err := io.ReadFull(f, buffer[:cap(buffer)])
	for err == nil && n <= mostBytes { // the file has grown since Stat
		buffer = append(buffer[:cap(buffer)], make([]byte, cap(buffer))...)
		var more int
		more, err = io.ReadFull(f, buffer[n:])
		n += more
	}
	switch {
	case n > mostBytes:
		return "", info, buffer, fmt.Errorf("it is longer than %d bytes: move long parts into sections", mostBytes)
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return "", info, buffer, err
	}
	return string(buffer[:n]), info, buffer, nil
}

// fileMessage returns why a file cannot be read. It leaves out the path, because the
// caller adds it.
func fileMessage(err error) string {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		err = inner.Err
	}
	if strings.Contains(err.Error(), "escapes from parent") {
		return "the link leads out of the directory: put a copy there"
	}
	return err.Error()
}
