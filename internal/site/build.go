package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

var (
	//go:embed assets/site.css
	style []byte
	//go:embed assets/site.js
	script []byte
)

// source is where files that are not pages are shown.
const source = "https://github.com/belay-run/belay/blob/main/"

// projectPages are pages outside of docs/ that the site has too.
var projectPages = []string{"CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}

// build makes the site of a repository beside the directory, and puts it in its place when all pages are made.
func build(root, out string) error {
	made := filepath.Clean(out) + ".new"
	if err := errors.Join(os.RemoveAll(made), fill(root, made)); err != nil {
		return errors.Join(err, os.RemoveAll(made))
	}
	return errors.Join(os.RemoveAll(out), os.Rename(made, out))
}

// fill writes the site into a directory.
func fill(root, out string) error {
	pages, err := readPages(root)
	if err != nil {
		return err
	}
	groups, err := groupsOf(pages)
	if err != nil {
		return err
	}
	var index []entry
	for _, p := range pages {
		if err := write(out, p.target, p.html(groups)); err != nil {
			return err
		}
		index = append(index, p.entries()...)
	}
	text, err := json.Marshal(index)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"site.css": style, "site.js": script,
		"search.js": fmt.Appendf(nil, "window.belayPages = %s;\n", text), // a script and not JSON, because a page that is a file may not fetch
	} {
		if err := write(out, name, content); err != nil {
			return err
		}
	}
	return copyFiles(filepath.Join(root, "docs"), out)
}

// readPages reads all pages, sorted by their path in the repository.
func readPages(root string) ([]*page, error) {
	names := slices.Clone(projectPages)
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && path.Ext(name) == ".md" {
			rel, relErr := filepath.Rel(root, name)
			names, err = append(names, filepath.ToSlash(rel)), relErr
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var pages []*page
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		p, err := parse(name, text)
		if err != nil {
			return nil, err
		}
		pages = append(pages, p)
	}
	return pages, nil
}

// targetOf returns where a page is in the site.
func targetOf(name string) string {
	name = strings.TrimPrefix(name, "docs/")
	if path.Base(name) == "README.md" {
		return path.Join(path.Dir(name), "index.html")
	}
	return strings.ToLower(strings.TrimSuffix(name, ".md")) + ".html"
}

// copyFiles copies what pages show and link to besides pages: pictures, schemas, dashboards.
func copyFiles(from, to string) error {
	return filepath.WalkDir(from, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) == ".md" {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return write(to, filepath.ToSlash(rel), content)
	})
}

func write(out, name string, content []byte) error {
	file := filepath.Join(out, filepath.FromSlash(name))
	return errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, content, 0o644))
}
