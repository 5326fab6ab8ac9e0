package repotest_test

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// modulePath is the import path of the root package. The rules below name a package by its
// directory. The root package is ".".
const modulePath = "github.com/belay-run/belay"

// update makes some tests rewrite a stale file instead of failing: go test
// ./internal/repotest -update.
var update = flag.Bool("update", false, "rewrite what is stale instead of failing")

// A goFile is one parsed Go file of the module. Build constraints are ignored, because the
// rules apply on every platform.
type goFile struct {
	path      string // relative to the repository, with slashes
	src       []byte
	fset      *token.FileSet
	syntax    *ast.File
	isTest    bool
	generated bool
}

// dir returns the directory of the file. The root package is ".".
func (f *goFile) dir() string { return path.Dir(f.path) }

// at returns the position of a node as path:line, which editors can open.
func (f *goFile) at(pos token.Pos) string {
	return fmt.Sprintf("%s:%d", f.path, f.fset.Position(pos).Line)
}

// repository lists the files of the repository, sorted. It does not use git, so that the
// tests also run in a source archive. It leaves out hidden directories except .ci, the
// output of `make build`, `make release` and `make site`, and testdata unless withTestdata is set.
func repository(withTestdata bool) ([]string, error) {
	var files []string
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if !entry.IsDir() {
			if entry.Type().IsRegular() && name != ".git" { // in a worktree, .git is a file
				files = append(files, name)
			}
			return nil
		}
		base := path.Base(name)
		hidden := strings.HasPrefix(base, ".") && name != "." && name != ".ci"
		if hidden || name == "bin" || name == "dist" || name == "site" || base == "testdata" && !withTestdata {
			return fs.SkipDir
		}
		return nil
	})
	slices.Sort(files)
	return files, err
}

// parsed parses every Go file of the module once for all tests. It leaves out other modules
// in the repository, such as tools.
var parsed = sync.OnceValues(func() ([]*goFile, error) {
	names, err := repository(false)
	if err != nil {
		return nil, err
	}
	var files []*goFile
	for _, name := range names {
		if path.Ext(name) != ".go" || inOtherModule(path.Dir(name)) {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		file, err := parseGo(name, string(src))
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		return nil, errors.New("no Go file found: these tests must run in the root directory of the repository")
	}
	return files, nil
})

// parseGo parses one file. Tests of the rules also call it with sources that are not in the
// repository.
func parseGo(name, src string) (*goFile, error) {
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &goFile{
		path:      name,
		src:       []byte(src),
		fset:      fset,
		syntax:    syntax,
		isTest:    strings.HasSuffix(name, "_test.go"),
		generated: ast.IsGenerated(syntax),
	}, nil
}

// inOtherModule reports whether a directory belongs to a module below the root.
func inOtherModule(dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, err := os.Stat(path.Join(dir, "go.mod")); err == nil {
			return true
		}
	}
	return false
}

// goFiles returns every Go file of the module for which keep returns true.
func goFiles(t *testing.T, keep func(*goFile) bool) []*goFile {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	var kept []*goFile
	for _, file := range all {
		if keep(file) {
			kept = append(kept, file)
		}
	}
	return kept
}

// handWritten reports whether a file is neither a test nor generated.
func handWritten(f *goFile) bool { return !f.isTest && !f.generated }

// mustParse parses a source, for tests of the rules.
func mustParse(t *testing.T, name, src string) *goFile {
	t.Helper()
	file, err := parseGo(name, src)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
