package repotest_test

import (
	"go/ast"
	"strings"
	"testing"
)

// eagerRegexps returns the positions of the regular expressions that are compiled when a program
// starts, although it may never use them.
func eagerRegexps(file *goFile) (at []string) {
	pkg := importedAs(file, "regexp")
	var look func(ast.Node) bool
	look = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false // it runs later
		case *ast.CallExpr:
			if called, ok := ast.Unparen(n.Fun).(*ast.FuncLit); ok {
				ast.Inspect(called.Body, look)
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == pkg && strings.Contains(n.Sel.Name, "Compile") {
				at = append(at, file.at(n.Pos()))
			}
		}
		return true
	}
	for _, d := range file.syntax.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			ast.Inspect(d, look)
		case *ast.FuncDecl:
			if d.Name.Name == "init" && d.Recv == nil {
				ast.Inspect(d.Body, look)
			}
		}
	}
	return at
}

// importedAs returns the name that a file has for a package of the standard library, or "" if it
// does not import the package.
func importedAs(file *goFile, path string) string {
	for _, i := range file.syntax.Imports {
		switch {
		case strings.Trim(i.Path.Value, "\"`") != path:
		case i.Name != nil:
			return i.Name.Name
		default:
			return path
		}
	}
	return ""
}

// A program starts without compiling the regular expressions of all packages.
func TestNoRegexpIsCompiledAtTheStart(t *testing.T) {
	t.Parallel()
	for _, file := range goFiles(t, handWritten) {
		for _, at := range eagerRegexps(file) {
			t.Errorf("%s: the regular expression is compiled at the start of every program: use lazyregexp.New", at)
		}
	}
	const plain = "import \"regexp\"\n"
	for src, want := range map[string]int{
		plain + "var x = regexp.MustCompile(`a`)":                                       1,
		plain + "var x = regexp.MustCompilePOSIX(`a`)":                                  1,
		plain + "var x, err = regexp.Compile(`a`)":                                      1,
		plain + "var (\n\ta = 1\n\tx = []*regexp.Regexp{regexp.MustCompile(`a`)}\n)":    1,
		plain + "var x = func() any { return regexp.MustCompile(`a`) }()":               1,
		plain + "var x = f(func() any { return regexp.MustCompile(`a`) }())":            1,
		plain + "func init() { x = regexp.MustCompile(`a`) }":                           1,
		"import re \"regexp\"\nvar x = re.MustCompile(`a`)":                             1,
		plain + "var x = func() { regexp.MustCompile(`a`) }":                            0,
		plain + "var x = sync.OnceValue(func() any { return regexp.MustCompile(`a`) })": 0,
		plain + "func init() { x = func() { regexp.MustCompile(`a`) } }":                0,
		plain + "func f() { regexp.MustCompile(`a`) }":                                  0,
		plain + "func (t T) init() { regexp.MustCompile(`a`) }":                         0,
		"import \"x/lazyregexp\"\nvar x = lazyregexp.New(`a`)":                          0,
	} {
		if got := eagerRegexps(mustParse(t, "a.go", "package a\n\n"+src)); len(got) != want {
			t.Errorf("%s: %d are found, want %d", src, len(got), want)
		}
	}
}
