package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// A tree is the files of an archive. A key is a path with slashes. Programs are executable.
type tree map[string]entry

type entry struct {
	content    []byte
	executable bool
}

func (e entry) mode() int64 {
	if e.executable {
		return 0o755
	}
	return 0o644
}

// below returns the tree with all paths below a directory.
func (t tree) below(dir string) tree {
	moved := tree{}
	for name, e := range t {
		moved[path.Join(dir, name)] = e
	}
	return moved
}

// names returns the paths in order.
func (t tree) names() []string { return slices.Sorted(maps.Keys(t)) }

// dirs returns all directories of the tree, each before what is in it.
func (t tree) dirs() []string {
	seen := map[string]bool{}
	for name := range t {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			seen[dir] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// tarGz returns the tree as a .tar.gz. The same tree and time give the same bytes: entries have an order, one time, and no owner.
// The prefix is before each name, as "./" is in Debian packages.
func (t tree) tarGz(when time.Time, prefix string) ([]byte, error) {
	var b bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(zipped)
	header := tar.Header{ModTime: when, Format: tar.FormatUSTAR, Uname: "root", Gname: "root"}
	for _, dir := range t.dirs() {
		h := header
		h.Typeflag, h.Name, h.Mode = tar.TypeDir, prefix+dir+"/", 0o755
		if err := w.WriteHeader(&h); err != nil {
			return nil, err
		}
	}
	for _, name := range t.names() {
		h := header
		h.Typeflag, h.Name, h.Mode, h.Size = tar.TypeReg, prefix+name, t[name].mode(), int64(len(t[name].content))
		if err := w.WriteHeader(&h); err != nil {
			return nil, err
		}
		if _, err := w.Write(t[name].content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := zipped.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// zip returns the tree as a .zip, likewise.
func (t tree) zip(when time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range t.names() {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: when.UTC()}
		h.SetMode(0o644)
		if t[name].executable {
			h.SetMode(0o755)
		}
		to, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := to.Write(t[name].content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// gz returns a text compressed as dpkg wants man pages: without name and time.
func gz(content []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// archiveName returns the name of a platform's archive, without the ending.
func (r *release) archiveName(p platform) string {
	return strings.Join([]string{"belay", r.version, p.system, p.arch}, "_")
}

// archiveFile returns the name of a platform's archive.
func (r *release) archiveFile(p platform) string {
	if p.system == "windows" {
		return r.archiveName(p) + ".zip"
	}
	return r.archiveName(p) + ".tar.gz"
}

// archive returns the archive of a program with what belongs to it.
func (r *release) archive(p program, extras tree) ([]byte, error) {
	files := tree{p.file(): {p.content, true}}
	maps.Copy(files, extras)
	files = files.below(r.archiveName(p.platform))
	if p.system == "windows" {
		return files.zip(r.time)
	}
	return files.tarGz(r.time, "")
}
