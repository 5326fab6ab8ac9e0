package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// lookUp finds a program as exec.Command does. A name with a slash is left for the
// child, whose working directory it may depend on.
func lookUp(name string) (string, error) {
	if strings.ContainsRune(name, '/') {
		return name, nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("sandbox: %w", err)
	}
	return path, nil
}

// resolve checks a policy and follows the symbolic links of what may be written, so
// that a link that changes later leads nowhere. Directories that are within others
// are left out, and so are those that are protected.
func resolve(p Policy) (Policy, error) {
	resolved := Policy{Network: p.Network}
	for _, name := range p.Protect {
		if err := checkName("Protect", name); err != nil {
			return Policy{}, err
		}
		resolved.Protect = append(resolved.Protect, filepath.Clean(name))
	}
	for _, name := range p.Sockets {
		if err := checkName("Sockets", name); err != nil {
			return Policy{}, err
		}
		resolved.Sockets = append(resolved.Sockets, filepath.Clean(name))
	}
	sealed := slices.Clone(resolved.Protect)
	for _, name := range resolved.Protect {
		if path, err := filepath.EvalSymlinks(name); err == nil { // else there is nothing below it
			sealed = append(sealed, path)
		}
	}
	var write []string
	for _, name := range p.Write {
		if err := checkName("Write", name); err != nil {
			return Policy{}, err
		}
		path, err := filepath.EvalSymlinks(name)
		if err != nil {
			return Policy{}, fmt.Errorf("sandbox: Write: %w", err)
		}
		info, err := os.Stat(path)
		if err != nil {
			return Policy{}, fmt.Errorf("sandbox: Write: %w", err)
		}
		if !info.IsDir() {
			return Policy{}, fmt.Errorf("sandbox: Write: %s is not a directory: name the directory that it is in", name)
		}
		if !slices.ContainsFunc(sealed, func(dir string) bool { return within(dir, path) || within(dir, filepath.Clean(name)) }) {
			write = append(write, path)
		}
	}
	slices.Sort(write) // those above come before those below
	for _, path := range write {
		if !slices.ContainsFunc(resolved.Write, func(dir string) bool { return within(dir, path) }) {
			resolved.Write = append(resolved.Write, path)
		}
	}
	return resolved, nil
}

// checkName refuses a name that would mean something else in another directory, or
// that no file can have.
func checkName(field, name string) error {
	switch {
	case !filepath.IsAbs(name):
		return fmt.Errorf("sandbox: %s: %q is not an absolute name", field, name)
	case strings.ContainsRune(name, 0):
		return fmt.Errorf("sandbox: %s: %q has a zero byte in it", field, name)
	default:
		return nil
	}
}

// within reports whether a path is a directory or below it. Both are clean.
func within(dir, path string) bool {
	if dir == path || dir == string(filepath.Separator) {
		return true
	}
	return strings.HasPrefix(path, dir) && path[len(dir)] == filepath.Separator
}
