package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// lookUp finds a program in PATH, like exec.Command. It does not change a name with a
// slash: the child resolves the name, because the name may be relative to the child's
// working directory.
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

// resolve checks a policy. It resolves the symbolic links in Write and Hide, so that
// later changes of a link have no effect. From Write it removes directories that are
// inside another one, and protected directories.
func resolve(p Policy) (Policy, error) {
	if err := p.Bounds.check(); err != nil {
		return Policy{}, err
	}
	resolved := Policy{Network: p.Network, Bounds: p.Bounds}
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
		if path, err := filepath.EvalSymlinks(name); err == nil { // on an error, nothing exists below the name
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
			return Policy{}, fmt.Errorf("sandbox: Write: %s is not a directory: use its parent directory", name)
		}
		if !slices.ContainsFunc(sealed, func(dir string) bool { return within(dir, path) || within(dir, filepath.Clean(name)) }) {
			write = append(write, path)
		}
	}
	slices.Sort(write) // puts parents before children
	for _, path := range write {
		if !slices.ContainsFunc(resolved.Write, func(dir string) bool { return within(dir, path) }) {
			resolved.Write = append(resolved.Write, path)
		}
	}
	var err error
	resolved.Hide, err = hidden(p.Hide, resolved.Write)
	return resolved, err
}

// hidden resolves the symbolic links in Hide. It drops names that do not exist or that
// this user cannot reach.
func hidden(names, write []string) ([]string, error) {
	var paths []string
	for _, name := range names {
		if err := checkName("Hide", name); err != nil {
			return nil, err
		}
		path, err := filepath.EvalSymlinks(name)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOTDIR):
			continue
		case err != nil:
			return nil, fmt.Errorf("sandbox: Hide: %w", err)
		case path == string(filepath.Separator):
			return nil, fmt.Errorf("sandbox: Hide: %s is the whole file system: name directories inside it", name)
		}
		if i := slices.IndexFunc(write, func(dir string) bool { return within(path, dir) }); i >= 0 {
			return nil, fmt.Errorf("sandbox: Hide: %s contains the writable directory %s, so it cannot be hidden: hide files inside it, or remove the directory from Write", name, write[i])
		}
		paths = append(paths, path)
	}
	slices.Sort(paths) // puts parents before children
	var hide []string
	for _, path := range paths {
		if !slices.ContainsFunc(hide, func(dir string) bool { return within(dir, path) }) {
			hide = append(hide, path)
		}
	}
	return hide, nil
}

// checkName rejects relative and invalid names.
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

// within reports whether path is dir or below dir. Both must be clean paths.
func within(dir, path string) bool {
	if dir == path || dir == string(filepath.Separator) {
		return true
	}
	return strings.HasPrefix(path, dir) && path[len(dir)] == filepath.Separator
}
