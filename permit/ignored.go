package permit

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// buildOutput are names of directories that tools make and can make again.
var buildOutput = wordSet("dist build out target node_modules coverage htmlcov .next .nuxt .output .svelte-kit .turbo .parcel-cache .cache .pytest_cache .mypy_cache .ruff_cache " +
	"__pycache__ .tox .nox .venv venv bin obj .gradle .nyc_output storybook-static cmake-build-debug cmake-build-release zig-cache zig-out .dart_tool tmp")

// isBuildOutput reports whether a path is a directory of build output that git ignores. To
// remove it loses nothing that cannot be made again.
func (c *invoked) isBuildOutput(a arg) bool {
	if !a.isText() || !buildOutput[path.Base(path.Clean(a.text))] || c.moved != "" || c.ranBefore() {
		return false
	}
	spots := c.entries(a) // with a slash at the end what a link leads to is removed
	for i := range spots {
		if s := &spots[i]; !s.inside || s.err != nil || !c.floor.ignores(s.rel) {
			return false
		}
	}
	return len(spots) > 0
}

// ignores reports whether the project's .gitignore names a directory as it is, and git has
// no file of it.
func (f *Floor) ignores(rel string) bool {
	dir := filepath.FromSlash(f.project.path)
	data, err := os.ReadFile(filepath.Join(dir, ".gitignore"))
	if err != nil || len(data) > longestScript {
		return false
	}
	ignored := false
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		switch name := strings.TrimSuffix(line, "/"); {
		case strings.HasPrefix(line, "!"):
			return false // something may be meant to stay
		case name == path.Base(rel), name == "/"+rel, name == rel, name == "**/"+path.Base(rel):
			ignored = true
		}
	}
	return ignored && !f.tracks(rel)
}

// tracks reports whether git has files of a directory, or may have.
func (f *Floor) tracks(rel string) bool {
	index, err := os.ReadFile(filepath.Join(filepath.FromSlash(f.project.path), ".git", "index"))
	if err != nil {
		return !os.IsNotExist(err)
	}
	const header = 8 // "DIRC" and the version; from version 4 on names are cut
	return len(index) < header || index[header-1] >= 4 || bytes.Contains(index, []byte(rel+"/"))
}
