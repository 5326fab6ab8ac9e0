package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	reference = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	anchor    = regexp.MustCompile(`id="([^"]*)"`)
	loaded    = regexp.MustCompile(`<(?:script|link|img|iframe)[^>]*(?:src|href)="(?:https?:)?//`)
)

// Every page of the docs is in the site, every link within it leads somewhere, nothing is loaded from elsewhere, and the search
// knows every page.
func TestSite(t *testing.T) {
	t.Parallel()
	root, out := filepath.Join("..", ".."), filepath.Join(t.TempDir(), "site")
	if err := build(root, out); err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	err := filepath.WalkDir(out, func(name string, _ fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".html" {
			text, readErr := os.ReadFile(name)
			rel, relErr := filepath.Rel(out, name)
			if readErr != nil || relErr != nil {
				t.Fatal(readErr, relErr)
			}
			pages[filepath.ToSlash(rel)] = string(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range pages {
		for _, problem := range linkProblems(out, pages, name, text) {
			t.Errorf("%s: %s", name, problem)
		}
		if found := loaded.FindString(text); found != "" {
			t.Errorf("%s loads something from elsewhere: %s", name, found)
		}
	}
	index, err := os.ReadFile(filepath.Join(out, "search.js"))
	if err != nil {
		t.Fatal(err)
	}
	var entries []entry
	if err := json.Unmarshal([]byte(strings.TrimSuffix(strings.TrimPrefix(string(index), "window.belayPages = "), ";\n")), &entries); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, e := range entries {
		target, _, _ := strings.Cut(e.URL, "#")
		known[target] = true
	}
	sources, err := readPages(root)
	if err != nil || len(sources) < 50 {
		t.Fatalf("%d pages, %v", len(sources), err)
	}
	for _, p := range sources {
		if pages[p.target] == "" || !known[p.target] {
			t.Errorf("%s is not in the site or not in the search", p.name)
		}
	}
}

// linkProblems returns the links of a page that lead nowhere.
func linkProblems(out string, pages map[string]string, name, text string) []string {
	var problems []string
	for _, m := range reference.FindAllStringSubmatch(text, -1) {
		if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
			continue
		}
		file, fragment, _ := strings.Cut(m[1], "#")
		target := name
		if file != "" {
			target = path.Join(path.Dir(name), file)
		}
		if _, err := os.Stat(filepath.Join(out, filepath.FromSlash(target))); err != nil {
			problems = append(problems, m[1]+" leads nowhere")
			continue
		}
		if fragment != "" && path.Ext(target) == ".html" {
			has := false
			for _, id := range anchor.FindAllStringSubmatch(pages[target], -1) {
				has = has || id[1] == fragment
			}
			if !has {
				problems = append(problems, m[1]+": the page has no such heading")
			}
		}
	}
	return problems
}

func TestLinkProblems(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	if err := write(out, "a.html", nil); err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{"a.html": `<h2 id="here">`}
	for text, want := range map[string]int{
		`<a href="a.html#here">`: 0, `<a href="a.html#there">`: 1, `<img src="b.png">`: 1, `<a href="https://example.com/x">`: 0, `<a href="#here">`: 0,
	} {
		if got := linkProblems(out, pages, "a.html", text); len(got) != want {
			t.Errorf("%s: %q, want %d", text, got, want)
		}
	}
}
