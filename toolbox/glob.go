package toolbox

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
)

const (
	defaultGlobbed = 100
	maxGlobbed     = 1_000
)

type globInput struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Limit   int    `json:"limit"`
	All     bool   `json:"all"`
}

func (f *files) globTool() belay.Tool { //nolint:ireturn // a tool is used through the interface
	return newTool("glob", "Finds files of the project by name, the most recently changed first. "+
		"* and ? stand for anything but a slash, ** for any directories, {a,b} for either. A pattern without a slash is matched against file names at any depth. Files excluded by .gitignore are skipped.", `{
		"type": "object", "additionalProperties": false, "required": ["pattern"], "properties": {
			"pattern": {"type": "string", "description": "such as *.go or src/**/*_test.ts"},
			"path": {"type": "string", "description": "the directory that the pattern is relative to; default the project"},
			"limit": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "maximum number of files; default 100"},
			"all": {"type": "boolean", "description": "include files excluded by .gitignore"}
		}}`, lookOnly, f.doGlob)
}

func (f *files) doGlob(ctx context.Context, _ *belay.Invocation, in *globInput) (belay.Result, error) {
	pattern := filepath.ToSlash(in.Pattern)
	if filepath.IsAbs(in.Pattern) {
		rel, ok := f.project.inside(filepath.Clean(in.Pattern))
		if !ok {
			return belay.Result{}, f.outside(in.Pattern)
		}
		pattern = rel
	}
	g, err := parseGlob(pattern)
	if err != nil {
		return belay.Result{}, err
	}
	top, err := f.directory(in.Path)
	if file, ok := errors.AsType[notDirectoryError](err); ok {
		return belay.Result{}, failf(belay.ClassInvalid, "%q is not a directory.", file.at.shown)
	}
	if err != nil {
		return belay.Result{}, err
	}
	found := newest{most: cmp.Or(min(in.Limit, maxGlobbed), defaultGlobbed)}
	w := &walker{place: top.place, all: in.All, enter: func(dir string) bool { return g.mayHold(below(top.rel, dir)) }, visit: func(e entry) error {
		if e.mode.IsDir() || !g.matches(below(top.rel, e.rel)) {
			return nil
		}
		info, err := top.place.root.Lstat(e.rel)
		if err != nil {
			return nil //nolint:nilerr // it is gone
		}
		found.add(globbed{top.within(below(top.rel, e.rel)).shown, info.ModTime()})
		return nil
	}}
	if err := w.walk(ctx, top.rel); err != nil {
		return belay.Result{}, f.explain(top, err)
	}
	view := GlobView{Kind: "glob", Pattern: in.Pattern, Files: found.sorted(), Total: found.total}
	var lines []string
	for _, name := range view.Files {
		lines = append(lines, inText(name))
	}
	text := strings.Join(lines, "\n")
	switch {
	case found.total == 0:
		text = fmt.Sprintf("No file matches %s.", in.Pattern)
	case found.total > len(view.Files):
		text += fmt.Sprintf("\n[the %d most recently changed of %d files]", len(view.Files), found.total)
	}
	return answer(text, view)
}

// below returns a path relative to a directory. The path must be below the directory.
func below(dir, rel string) string {
	if dir == "." {
		return rel
	}
	return strings.TrimPrefix(rel, dir+"/")
}

// glob is a pattern for paths.
type glob struct {
	re    *regexp.Regexp
	base  bool     // the pattern has no slash, so it is matched against the file name only
	fixed []string // the directories with which the pattern begins
}

func parseGlob(pattern string) (*glob, error) {
	pattern = strings.TrimPrefix(pattern, "./")
	if pattern == "" {
		return nil, failf(belay.ClassInvalid, "The pattern is empty.")
	}
	if slices.Contains(strings.Split(pattern, "/"), "..") {
		return nil, failf(belay.ClassInvalid, "The pattern %q contains \"..\": set path to the directory to search in.", pattern)
	}
	g := &glob{base: !strings.Contains(pattern, "/")}
	pattern = strings.TrimPrefix(pattern, "/")
	re, err := compilePath(pattern, true)
	if err != nil {
		return nil, failf(belay.ClassInvalid, "%q is not a pattern: %v.", pattern, errPattern)
	}
	g.re = re
	plain := pattern
	if i := strings.IndexAny(pattern, `*?[{\`); i >= 0 {
		plain = pattern[:i]
	}
	if i := strings.LastIndexByte(plain, '/'); i > 0 {
		g.fixed = strings.Split(plain[:i], "/")
	}
	return g, nil
}

func (g *glob) matches(rel string) bool {
	if g.base {
		rel = path.Base(rel)
	}
	return g.re.MatchString(rel)
}

// mayHold reports whether there can be matches below a directory.
func (g *glob) mayHold(dir string) bool {
	parts := strings.Split(dir, "/")
	n := min(len(parts), len(g.fixed))
	return slices.Equal(parts[:n], g.fixed[:n])
}

type globbed struct {
	name    string
	changed time.Time
}

// newest keeps the most recently changed files, up to a limit.
type newest struct {
	files []globbed // a heap with the least recently changed file on top
	most  int
	total int
}

func (n *newest) add(g globbed) {
	n.total++
	if len(n.files) < n.most {
		heap.Push(n, g)
		return
	}
	if compareGlobbed(g, n.files[0]) < 0 {
		n.files[0] = g
		heap.Fix(n, 0)
	}
}

// sorted returns the names of the files, the most recently changed first.
func (n *newest) sorted() []string {
	slices.SortFunc(n.files, compareGlobbed)
	names := make([]string, len(n.files))
	for i, g := range n.files {
		names[i] = g.name
	}
	return names
}

// compareGlobbed sorts the most recently changed files first, and then by name.
func compareGlobbed(a, b globbed) int {
	return cmp.Or(b.changed.Compare(a.changed), cmp.Compare(a.name, b.name))
}

func (n *newest) Len() int           { return len(n.files) }
func (n *newest) Less(i, j int) bool { return compareGlobbed(n.files[i], n.files[j]) > 0 }
func (n *newest) Swap(i, j int)      { n.files[i], n.files[j] = n.files[j], n.files[i] }
func (n *newest) Push(x any)         { n.files = append(n.files, x.(globbed)) }

func (n *newest) Pop() any {
	last := n.files[len(n.files)-1]
	n.files = n.files[:len(n.files)-1]
	return last
}
