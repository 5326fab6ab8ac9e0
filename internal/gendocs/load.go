package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// loaded is a package with its types. Its syntax has the comments.
type loaded struct {
	module string
	name   string // the path within the module; the package name if the package is in the root
	set    *token.FileSet
	files  []*ast.File
	types  *types.Package
	known  map[string]*types.Package // all packages that were read, by path
}

// listed is a package as go list describes it.
type listed struct {
	ImportPath string            //nolint:tagliatelle // go list's names
	Dir        string            //nolint:tagliatelle // likewise
	GoFiles    []string          //nolint:tagliatelle // likewise
	ImportMap  map[string]string //nolint:tagliatelle // likewise
	Module     *struct {         //nolint:tagliatelle // likewise
		Path string //nolint:tagliatelle // likewise
	}
	DepOnly bool //nolint:tagliatelle // likewise
}

// load reads the packages of the repository that programs can import, and their types, as they are on Linux. It reads source only,
// without the bodies of functions: nothing is compiled.
func load(root string) ([]*loaded, error) {
	dirs, err := importable(root)
	if err != nil {
		return nil, err
	}
	all, err := list(root, dirs)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	files, err := parse(set, all)
	if err != nil {
		return nil, err
	}
	var found []*loaded
	known := map[string]*types.Package{"unsafe": types.Unsafe}
	for i, p := range all { // each after those that it imports
		if p.ImportPath == "unsafe" {
			continue
		}
		var problems []error
		config := types.Config{
			IgnoreFuncBodies: true, Sizes: types.SizesFor("gc", "amd64"), Importer: importer{known, p.ImportMap},
			Error: func(err error) { problems = append(problems, err) },
		}
		known[p.ImportPath], _ = config.Check(p.ImportPath, set, files[i], nil) // the error is among the problems
		if p.DepOnly {
			continue // only what is listed must be right
		}
		if len(problems) > 0 {
			return nil, errors.Join(problems...)
		}
		name, ok := strings.CutPrefix(p.ImportPath, p.Module.Path+"/")
		if !ok {
			name = known[p.ImportPath].Name()
		}
		found = append(found, &loaded{p.Module.Path, name, set, files[i], known[p.ImportPath], known})
	}
	slices.SortFunc(found, func(a, b *loaded) int { return strings.Compare(a.name, b.name) })
	return found, nil
}

// importer finds the packages that were checked before.
type importer struct {
	known map[string]*types.Package
	paths map[string]string // of packages that the standard library has copies of
}

func (i importer) Import(path string) (*types.Package, error) {
	if other, ok := i.paths[path]; ok {
		path = other
	}
	if p := i.known[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s is not listed", path)
}

// importable returns the directories of the packages that programs can import.
func importable(root string) ([]string, error) {
	target := build.Default
	target.GOOS, target.GOARCH, target.CgoEnabled = "linux", "amd64", false
	var dirs []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); path != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{"internal", "testdata", "node_modules", "examples", "cmd", "tools", "docs", "dist", "site"}, name)) {
			return filepath.SkipDir
		}
		if found, err := target.ImportDir(path, 0); err == nil && found.Name != "main" { // an error: the directory has no package
			at, err := filepath.Rel(root, path)
			dirs = append(dirs, "./"+filepath.ToSlash(at))
			return err
		}
		return nil
	})
	return dirs, err
}

// list returns packages and all that they import, each after those that it imports.
func list(root string, dirs []string) ([]*listed, error) {
	cmd := exec.CommandContext(context.Background(), "go", append([]string{"list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module,DepOnly"}, dirs...)...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, complaint.String())
	}
	var all []*listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(listed)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// parse reads the files of packages, several at a time.
func parse(set *token.FileSet, all []*listed) ([][]*ast.File, error) {
	files := make([][]*ast.File, len(all))
	errs := make([]error, len(all))
	var busy sync.WaitGroup
	for i, p := range all {
		busy.Go(func() {
			mode := parser.SkipObjectResolution
			if !p.DepOnly {
				mode |= parser.ParseComments
			}
			for _, name := range p.GoFiles {
				file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, mode)
				if err != nil {
					errs[i] = err
					return
				}
				if p.DepOnly {
					withoutBodies(file)
				}
				files[i] = append(files[i], file)
			}
		})
	}
	busy.Wait()
	return files, errors.Join(errs...)
}

// withoutBodies removes the bodies of functions: a translated library has a hundred thousand lines of them.
func withoutBodies(file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			f.Body = nil
		}
	}
}
