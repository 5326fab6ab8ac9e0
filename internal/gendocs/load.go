package main

import (
	"bytes"
	"cmp"
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
	"strconv"
	"strings"
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
	Name       string            `json:"Name"`       //nolint:tagliatelle // go list's names
	ImportPath string            `json:"ImportPath"` //nolint:tagliatelle // likewise
	Dir        string            `json:"Dir"`        //nolint:tagliatelle // likewise
	GoFiles    []string          `json:"GoFiles"`    //nolint:tagliatelle // likewise
	ImportMap  map[string]string `json:"ImportMap"`  //nolint:tagliatelle // likewise
	Module     *struct {
		Path string `json:"Path"` //nolint:tagliatelle // likewise
	} `json:"Module"` //nolint:tagliatelle // likewise
	DepOnly bool `json:"DepOnly"` //nolint:tagliatelle // likewise
}

// load reads the packages of the repository that programs can import, and their types, as they are on Linux. It reads source only,
// without the bodies of functions, and of what they import only what their types need: nothing is compiled.
func load(root string) ([]*loaded, error) {
	dirs, err := importable(root)
	if err != nil {
		return nil, err
	}
	all, err := list(root, dirs)
	if err != nil {
		return nil, err
	}
	l := &loader{set: token.NewFileSet(), listed: map[string]*listed{}, files: map[string][]*ast.File{}, known: map[string]*types.Package{"unsafe": types.Unsafe}}
	for _, p := range all {
		l.listed[p.ImportPath] = p
	}
	var found []*loaded
	for _, p := range all {
		if p.DepOnly {
			continue
		}
		checked, err := importer{l, p}.Import(p.ImportPath)
		if err != nil {
			return nil, err
		}
		name, ok := strings.CutPrefix(p.ImportPath, p.Module.Path+"/")
		if !ok {
			name = checked.Name()
		}
		found = append(found, &loaded{p.Module.Path, name, l.set, l.files[p.ImportPath], checked, l.known})
	}
	slices.SortFunc(found, func(a, b *loaded) int { return strings.Compare(a.name, b.name) })
	return found, nil
}

// loader reads packages when they are needed.
type loader struct {
	set    *token.FileSet
	listed map[string]*listed
	files  map[string][]*ast.File
	known  map[string]*types.Package
}

// check reads a package and finds its types.
func (l *loader) check(p *listed) error {
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(l.set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		withoutBodies(file)
		l.withoutUnused(p, file)
		files = append(files, file)
	}
	var problems []error
	config := types.Config{
		IgnoreFuncBodies: true, Sizes: types.SizesFor("gc", "amd64"), Importer: importer{l, p},
		Error: func(err error) { problems = append(problems, err) },
	}
	l.known[p.ImportPath], _ = config.Check(p.ImportPath, l.set, files, nil) // the error is among the problems
	l.files[p.ImportPath] = files
	return errors.Join(problems...)
}

// withoutBodies removes what functions do.
func withoutBodies(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			n.Body = new(ast.BlockStmt)
		case *ast.FuncLit:
			n.Body = new(ast.BlockStmt)
		}
		return true
	})
}

// withoutUnused removes the imports that no declaration uses.
func (l *loader) withoutUnused(p *listed, file *ast.File) {
	used := map[string]bool{".": true}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				used[x.Name] = true
			}
		}
		return true
	})
	unused := func(s ast.Spec) bool {
		spec := s.(*ast.ImportSpec)
		if spec.Name != nil {
			return !used[spec.Name.Name]
		}
		path, err := strconv.Unquote(spec.Path.Value)
		found := l.listed[p.real(path)]
		return err == nil && found != nil && !used[found.Name]
	}
	file.Decls = slices.DeleteFunc(file.Decls, func(d ast.Decl) bool {
		g, ok := d.(*ast.GenDecl)
		if ok && g.Tok == token.IMPORT {
			g.Specs = slices.DeleteFunc(g.Specs, unused)
		}
		return ok && len(g.Specs) == 0
	})
}

// real returns the path of a package that is imported: the standard library has copies of some.
func (p *listed) real(path string) string { return cmp.Or(p.ImportMap[path], path) }

// importer reads what a package imports.
type importer struct {
	*loader

	of *listed
}

func (i importer) Import(path string) (*types.Package, error) {
	path = i.of.real(path)
	if i.known[path] == nil {
		p := i.listed[path]
		if p == nil {
			return nil, fmt.Errorf("%s is not listed", path)
		}
		if err := i.check(p); err != nil {
			return nil, err
		}
	}
	return i.known[path], nil
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
	cmd := exec.CommandContext(context.Background(), "go", append([]string{"list", "-deps", "-json=Name,ImportPath,Dir,GoFiles,ImportMap,Module,DepOnly"}, dirs...)...) //nolint:gosec // directories of the repository
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
