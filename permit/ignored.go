package permit

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// buildOutput are names of directories that tools create and can create again.
var buildOutput = wordSet("dist build out target node_modules coverage htmlcov .next .nuxt .output .svelte-kit .turbo .parcel-cache .cache .pytest_cache .mypy_cache .ruff_cache " +
	"__pycache__ .tox .nox .venv venv bin obj .gradle .nyc_output storybook-static cmake-build-debug cmake-build-release zig-cache zig-out .dart_tool tmp")

// isBuildOutput reports whether a path is, or is below, a directory of build output that
// git ignores. Removing build output loses nothing, because tools can create it again.
func (c *invoked) isBuildOutput(a arg) bool {
	if !a.isText() || c.moved != "" || c.ranBefore() {
		return false
	}
	spots := c.entries(a) // with a trailing slash, rm removes the target of a link
	for i := range spots {
		if s := &spots[i]; !s.inside || s.err != nil || !c.floor.inBuildOutput(s.rel) {
			return false
		}
	}
	return len(spots) > 0
}

func (f *Floor) inBuildOutput(rel string) bool {
	for dir := rel; dir != "."; dir = path.Dir(dir) {
		if buildOutput[path.Base(dir)] && f.ignores(dir) {
			return true
		}
	}
	return false
}

// ignores reports whether git ignores a directory and tracks no file in it. A .gitignore
// of the project, or above it in the repository, must name the directory literally.
func (f *Floor) ignores(rel string) bool {
	top, index, ok := f.repository()
	if !ok {
		return false
	}
	full, _ := top.holds(path.Join(f.project.path, rel))
	ignored := false
	for dir := top.path; ; { // from the top down to the parent of the directory
		below, _ := (root{dir}).holds(path.Join(top.path, full))
		named, excepts := namesIgnored(filepath.Join(filepath.FromSlash(dir), ".gitignore"), below)
		if excepts {
			return false
		}
		ignored = ignored || named
		first, _, more := strings.Cut(below, "/")
		if !more {
			break
		}
		dir = path.Join(dir, first)
	}
	return ignored && !tracks(index, full)
}

// namesIgnored reports whether an ignore file names a path. rel is relative to the
// directory of that file. excepts is set if the file has exceptions, so that git may
// track some files anyway.
func namesIgnored(file, rel string) (named, excepts bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return false, !os.IsNotExist(err)
	}
	if len(data) > longestScript {
		return false, true
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		switch name := strings.TrimSuffix(line, "/"); {
		case strings.HasPrefix(line, "!"):
			return false, true
		case name == path.Base(rel), name == "/"+rel, name == rel, name == "**/"+path.Base(rel):
			named = true
		}
	}
	return named, false
}

// repository finds the repository that contains the project. Its top may be above the
// project. It returns the top of the working tree and the path of git's index. Without a
// repository, the path of the index is empty.
func (f *Floor) repository() (top root, index string, ok bool) {
	for at := f.project.path; ; at = path.Dir(at) {
		git := filepath.Join(filepath.FromSlash(at), ".git")
		info, err := os.Stat(git)
		switch {
		case err == nil && info.IsDir():
			return root{at}, filepath.Join(git, "index"), true
		case err == nil: // a submodule, or an additional working tree
			data, err := os.ReadFile(git)
			to, leads := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.FromSlash(at), to)
			}
			return root{at}, filepath.Join(to, "index"), err == nil && leads
		case !os.IsNotExist(err):
			return root{}, "", false
		case at == path.Dir(at): // no index: git tracks no file
			return f.project, "", true
		}
	}
}

// tracks reports whether git tracks files in a directory, or may do so. file is git's
// index, and rel is relative to the top of the repository.
func tracks(file, rel string) bool {
	if file == "" {
		return false
	}
	index, err := os.ReadFile(file)
	if err != nil {
		return !os.IsNotExist(err)
	}
	const header = 8 // "DIRC" and the version; version 4 compresses names
	split := bytes.Contains(index, []byte("link\x00\x00"))
	return len(index) < header || index[header-1] >= 4 || split || bytes.Contains(index, []byte(rel+"/"))
}
