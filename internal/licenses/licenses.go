// Package licenses finds the modules that a program is made of, and their licences. It reads the licence files in the module
// cache: nothing is fetched, and nothing is taken from a list that somebody wrote.
package licenses

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// A Module is a part of the program that others wrote.
type Module struct {
	Path    string // such as github.com/spf13/cobra
	Version string // such as v1.10.2
	License string // an expression of SPDX: all of these licences apply
	Files   []File // the licence files
}

// A File is a licence file of a module.
type File struct {
	Name string // within the module, with slashes
	Text string
}

// systems are the operating systems that the program is built for. Each may need other modules.
var systems = []string{"linux", "darwin", "windows"}

// embedded are the parts that are not Go modules: files in the repository that others wrote.
var embedded = []struct{ path, version, license, file string }{
	{"htmx.org", "v2.0.11", "0BSD", "serve/console/assets/htmx.LICENSE"},
}

// Of returns the modules of a package of the repository in root, and Go itself, sorted by path. It is an error if a module has
// no licence file, or one that is not known.
func Of(ctx context.Context, root, pkg string) ([]Module, error) {
	dirs := map[string]*module{}
	for _, system := range systems {
		if err := listed(ctx, root, pkg, system, dirs); err != nil {
			return nil, err
		}
	}
	var all []Module
	var problems []error
	for _, m := range dirs {
		found, err := m.read()
		if err != nil {
			problems = append(problems, err)
			continue
		}
		all = append(all, found)
	}
	golang := &module{path: "Go standard library", version: "", root: runtime.GOROOT(), dirs: []string{runtime.GOROOT()}} //nolint:staticcheck // the program runs with the toolchain that compiled it
	found, err := golang.read()
	problems = append(problems, err)
	all = append(all, found)
	for _, e := range embedded {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.file)))
		if ids := identify(string(text)); err == nil && !slices.Equal(ids, []string{e.license}) {
			err = fmt.Errorf("%s is %s, not %s: correct the list in internal/licenses", e.file, strings.Join(ids, " AND "), e.license)
		}
		problems = append(problems, err)
		all = append(all, Module{Path: e.path, Version: e.version, License: e.license, Files: []File{{filepath.Base(e.file), string(text)}}})
	}
	slices.SortFunc(all, func(a, b Module) int { return strings.Compare(a.Path, b.Path) })
	return all, errors.Join(problems...)
}

// A module is a module in the module cache, with the directories of the packages that are used.
type module struct {
	path, version, root string
	dirs                []string
}

// listed adds the modules that the package needs on a system.
func listed(ctx context.Context, root, pkg, system string, into map[string]*module) error {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}", pkg)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list: %w: %s", err, complaint.String())
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		part := strings.Split(lines.Text(), "\t")
		if len(part) != 4 {
			continue // the standard library, and the module itself
		}
		m := into[part[0]]
		if m == nil {
			m = &module{path: part[0], version: part[1], root: part[2]}
			into[part[0]] = m
		}
		if !slices.Contains(m.dirs, part[3]) {
			m.dirs = append(m.dirs, part[3])
		}
	}
	return nil
}

// read reads the licence files in the directories of the packages and above them.
func (m *module) read() (Module, error) {
	found := Module{Path: m.path, Version: m.version}
	var ids []string
	for _, dir := range m.places() {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return found, err
		}
		for _, entry := range entries {
			if !isLicence(entry.Name()) || entry.IsDir() {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			if err != nil {
				return found, err
			}
			name, err := filepath.Rel(m.root, filepath.Join(dir, entry.Name()))
			if err != nil {
				return found, err
			}
			found.Files = append(found.Files, File{filepath.ToSlash(name), string(text)})
			these := identify(string(text))
			if len(these) == 0 && !isNotice(entry.Name()) {
				return found, fmt.Errorf("%s: the licence in %s is not known: add it to internal/licenses", m.path, name)
			}
			ids = append(ids, these...)
		}
	}
	if len(ids) == 0 {
		return found, fmt.Errorf("%s has no licence file in %s", m.path, m.root)
	}
	slices.Sort(ids)
	found.License = strings.Join(slices.Compact(ids), " AND ")
	return found, nil
}

// places returns the directories of the packages and those above them within the module, sorted.
func (m *module) places() []string {
	var all []string
	for _, dir := range append([]string{m.root}, m.dirs...) {
		for ; len(dir) >= len(m.root); dir = filepath.Dir(dir) {
			if slices.Contains(all, dir) {
				break
			}
			all = append(all, dir)
		}
	}
	slices.Sort(all)
	return all
}

// isLicence reports whether a file name is one under which licences are found.
func isLicence(name string) bool {
	upper := strings.ToUpper(name)
	if filepath.Ext(upper) == ".GO" {
		return false
	}
	for _, prefix := range []string{"LICENSE", "LICENCE", "COPYING", "UNLICENSE"} {
		if strings.HasPrefix(upper, prefix) {
			return true
		}
	}
	return isNotice(name)
}

// isNotice reports whether a file has no licence of its own, but text that must be passed on.
func isNotice(name string) bool {
	upper := strings.ToUpper(name)
	return strings.HasPrefix(upper, "NOTICE") || strings.HasPrefix(upper, "PATENTS") || strings.HasSuffix(upper, "-LOGO") // a picture that is not in the program
}
