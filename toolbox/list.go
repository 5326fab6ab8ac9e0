package toolbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/belay-run/belay"
)

const (
	defaultDepth = 2
	maxListed    = 1_000 // entries of the whole listing
	maxListedDir = 200   // entries of one directory
)

type listInput struct {
	Path  string `json:"path"`
	Depth int    `json:"depth"`
	All   bool   `json:"all"`
}

func (f *files) listTool() belay.Tool { //nolint:ireturn // a tool is used through the interface
	return newTool("list", "Lists a directory of the project as a tree. Directories end in a slash. Files excluded by .gitignore are skipped.", `{
		"type": "object", "additionalProperties": false, "properties": {
			"path": {"type": "string", "description": "the directory, relative to the project; default the project"},
			"depth": {"type": "integer", "minimum": 1, "maximum": 20, "description": "how many levels to show; default 2"},
			"all": {"type": "boolean", "description": "include files excluded by .gitignore"}
		}}`, lookOnly, f.doList)
}

// tree is the state of a listing.
type tree struct {
	top   spot
	depth int
	text  strings.Builder
	count int            // how many entries are shown
	in    map[string]int // for each directory, how many entries are shown
	cut   bool
}

var errEnough = errors.New("enough")

func (f *files) doList(ctx context.Context, _ *belay.Invocation, in *listInput) (belay.Result, error) {
	at, err := f.directory(in.Path)
	if file, ok := errors.AsType[notDirectoryError](err); ok {
		return belay.Result{}, failf(belay.ClassInvalid, "%q is a file of %s and not a directory: use read to see its content.", file.at.shown, size(file.info.Size()))
	}
	if err != nil {
		return belay.Result{}, err
	}
	t := &tree{top: at, depth: in.Depth, in: map[string]int{}}
	if t.depth <= 0 {
		t.depth = defaultDepth
	}
	t.text.WriteString(inText(at.shown+"/") + "\n")
	w := &walker{place: at.place, all: in.All, visit: t.add, enter: t.enters}
	if err := w.walk(ctx, at.rel); err != nil && !errors.Is(err, errEnough) {
		return belay.Result{}, f.explain(at, err)
	}
	if t.count == 0 {
		t.text.WriteString("[the directory is empty]")
		if !in.All {
			t.text.WriteString(" [or .gitignore excludes its content: set all to see it]")
		}
	}
	if t.count >= maxListed {
		fmt.Fprintf(&t.text, "[the first %d entries; list a directory further down, or use glob]", t.count)
	}
	return answer(t.text.String(), ListView{Kind: "list", Path: at.shown, Entries: t.count, Cut: t.cut})
}

// level returns how many directories are between the top and a path.
func (t *tree) level(rel string) int {
	if t.top.rel != "." {
		rel = strings.TrimPrefix(rel, t.top.rel+"/")
	}
	return strings.Count(rel, "/")
}

func (t *tree) enters(dir string) bool {
	return t.level(dir)+1 < t.depth && t.in[path.Dir(dir)] <= maxListedDir
}

func (t *tree) add(e entry) error {
	if t.count >= maxListed {
		t.cut = true
		return errEnough
	}
	indent := strings.Repeat("  ", t.level(e.rel)+1)
	dir := path.Dir(e.rel)
	t.in[dir]++
	if n := t.in[dir]; n > maxListedDir {
		t.cut = true
		if n == maxListedDir+1 {
			fmt.Fprintf(&t.text, "%s[... more than %d entries]\n", indent, maxListedDir)
		}
		return nil
	}
	t.count++
	name := path.Base(e.rel)
	if e.mode.IsDir() {
		name += "/"
	}
	t.text.WriteString(indent + inText(name))
	if e.mode&fs.ModeSymlink != 0 {
		if target, err := t.top.place.root.Readlink(e.rel); err == nil {
			t.text.WriteString(" -> " + inText(target))
		}
	}
	t.text.WriteByte('\n')
	return nil
}
