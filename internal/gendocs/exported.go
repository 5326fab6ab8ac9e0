package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// exported lists what programs can use of the Go packages, one name in a line, and the names that are experimental with the reason.
// Experimental names are not in the list, because nothing is promised about them.
type exported struct {
	lines        []string
	experimental [][2]string
}

// readExported reads the packages of the repository, as they are on Linux.
func readExported(root string) (*exported, error) {
	e := new(exported)
	target := build.Default
	target.GOOS, target.GOARCH, target.CgoEnabled = "linux", "amd64", false
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); path != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{"internal", "testdata", "node_modules", "examples", "cmd", "tools", "docs", "dist", "site"}, name)) {
			return filepath.SkipDir
		}
		at, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		found, err := target.ImportDir(path, 0)
		if err != nil || found.Name == "main" {
			return nil //nolint:nilerr // the directory has no package
		}
		name := filepath.ToSlash(at)
		if at == "." {
			name = found.Name
		}
		return e.add(name, path, found.GoFiles)
	})
	slices.Sort(e.lines)
	return e, err
}

// add adds a package.
func (e *exported) add(name, dir string, names []string) error {
	set := token.NewFileSet()
	var files []*ast.File
	for _, n := range names {
		data, err := os.ReadFile(filepath.Join(dir, n))
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(set, n, data, parser.ParseComments)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	p, err := doc.NewFromFiles(set, files, name)
	if err != nil {
		return err
	}
	if e.isExperimental(name, p.Doc) {
		return nil
	}
	l := &listing{e, name, set}
	l.values("const", p.Consts)
	l.values("var", p.Vars)
	l.functions("", p.Funcs)
	for _, t := range p.Types {
		if e.isExperimental(name+"."+t.Name, t.Doc) {
			continue
		}
		for _, spec := range t.Decl.Specs {
			if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() {
				l.addType(s)
			}
		}
		l.values("const", t.Consts)
		l.values("var", t.Vars)
		l.functions("", t.Funcs)
		l.functions(t.Name+".", t.Methods)
	}
	return nil
}

// listing adds the names of one package.
type listing struct {
	*exported

	name string
	set  *token.FileSet
}

func (l *listing) linef(format string, args ...any) {
	l.lines = append(l.lines, "pkg "+l.name+", "+fmt.Sprintf(format, args...))
}

func (l *listing) values(kind string, all []*doc.Value) {
	for _, v := range all {
		for _, spec := range v.Decl.Specs {
			s, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			typ := ""
			if s.Type != nil {
				typ = " " + text(l.set, s.Type)
			}
			for _, n := range s.Names {
				if n.IsExported() && !l.isExperimental(l.name+"."+n.Name, v.Doc+s.Doc.Text()) {
					l.linef("%s %s%s", kind, n.Name, typ)
				}
			}
		}
	}
}

func (l *listing) functions(of string, all []*doc.Func) {
	for _, f := range all {
		if f.Level == 0 && !l.isExperimental(l.name+"."+of+f.Name, f.Doc) { // a method of an embedded type is listed with that type
			f.Decl.Body, f.Decl.Doc = nil, nil
			l.linef("%s", text(l.set, f.Decl))
		}
	}
}

// addType adds a type. Fields have lines of their own, because a program keeps compiling with more of them. A method more of an
// interface is a method that a program may lack.
func (l *listing) addType(s *ast.TypeSpec) {
	head := *s
	head.Doc, head.Comment = nil, nil
	structure, ok := s.Type.(*ast.StructType)
	if !ok {
		l.linef("type %s", text(l.set, &head))
		return
	}
	head.Type = &ast.StructType{Fields: new(ast.FieldList)}
	l.linef("type %s", strings.TrimSuffix(text(l.set, &head), " { }"))
	for _, field := range structure.Fields.List {
		typ := text(l.set, field.Type)
		if len(field.Names) == 0 {
			l.linef("type %s struct, embeds %s", s.Name, typ)
		}
		for _, n := range field.Names {
			if n.IsExported() {
				l.linef("type %s struct, %s %s", s.Name, n.Name, typ)
			}
		}
	}
}

// text prints a node in one line, without comments.
func text(set *token.FileSet, node ast.Node) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, set, withoutComments(node)); err != nil {
		return err.Error() // a declaration that was parsed can be printed
	}
	return strings.ReplaceAll(strings.Join(strings.Fields(b.String()), " "), " // contains filtered or unexported methods }", "; unexported methods }")
}

// withoutComments removes the comments of the fields and methods below a node.
func withoutComments(node ast.Node) ast.Node {
	ast.Inspect(node, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok {
			f.Doc, f.Comment = nil, nil
		}
		return true
	})
	return node
}

// isExperimental reports whether a comment has a paragraph that begins with "Experimental:", and notes the reason.
func (e *exported) isExperimental(name, comment string) bool {
	for paragraph := range strings.SplitSeq(comment, "\n\n") {
		if reason, ok := strings.CutPrefix(paragraph, "Experimental:"); ok {
			e.experimental = append(e.experimental, [2]string{name, strings.Join(strings.Fields(reason), " ")})
			return true
		}
	}
	return false
}

// list returns the names for docs/reference/exported.txt.
func (e *exported) list() []byte { return []byte(strings.Join(e.lines, "\n") + "\n") }

// table returns the experimental names for the docs.
func (e *exported) table() string {
	var b strings.Builder
	b.WriteString("| experimental | why |\n|---|---|\n")
	for _, x := range e.experimental {
		fmt.Fprintf(&b, "| `%s` | %s |\n", x[0], x[1])
	}
	return b.String()
}

// removed returns the lines of an older list that a newer one does not have: what a program may use that does not compile any
// more.
func removed(older, newer []byte) []string {
	have := make(map[string]bool)
	for line := range strings.Lines(string(newer)) {
		have[line] = true
	}
	var gone []string
	for line := range strings.Lines(string(older)) {
		if !have[line] {
			gone = append(gone, strings.TrimSpace(line))
		}
	}
	return gone
}
