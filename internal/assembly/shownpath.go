package assembly

import (
	"os"
	"path/filepath"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/space"
)

// ShownPath returns a short form of a path: relative to the project, or with ~ for the home
// directory.
func ShownPath(s *config.Loaded, file string) string {
	for _, dir := range []string{s.Project, RealDir(s.Project)} {
		if rel, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(rel) {
			return rel
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		if rel, err := filepath.Rel(home, file); err == nil && filepath.IsLocal(rel) {
			return filepath.Join("~", rel)
		}
	}
	return file
}

// TrustedName returns how a person names the files of a trusted directory: the directory, or
// .mcp.json for the servers of a project.
func TrustedName(s *config.Loaded, loaded *space.Space) string {
	if loaded.Origin == (hook.Origin{Kind: hook.OriginProject, Name: projectServersName}) {
		return ".mcp.json"
	}
	return ShownPath(s, loaded.Dir)
}

// RealDir returns a directory with links resolved.
func RealDir(dir string) string {
	if actual, err := filepath.EvalSymlinks(dir); err == nil {
		return actual
	}
	return dir
}

// RelativePath returns a path relative to the project, if the file is inside the project.
func RelativePath(s *config.Loaded, path string) string {
	if rel, err := filepath.Rel(s.Project, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
