package repotest_test

import (
	"go/ast"
	"testing"
)

// eagerRegexps returns the positions of the regular expressions that are compiled when a program
// starts, although it may never use them.
func eagerRegexps(file *goFile) (at []string) {
	for _, d := range file.syntax.Decls {
		vars, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		ast.Inspect(vars, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				return false // it runs later
			case *ast.SelectorExpr:
				if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "regexp" && n.Sel.Name == "MustCompile" {
					at = append(at, file.at(n.Pos()))
				}
			}
			return true
		})
	}
	return at
}

// A program starts without compiling the regular expressions of all packages.
func TestNoRegexpIsCompiledAtTheStart(t *testing.T) {
	t.Parallel()
	for _, file := range goFiles(t, handWritten) {
		for _, at := range eagerRegexps(file) {
			t.Errorf("%s: the regular expression is compiled at the start of every program: use lazyregexp.New", at)
		}
	}
	for src, want := range map[string]int{
		"var x = regexp.MustCompile(`a`)":                                    1,
		"var (\n\ta = 1\n\tx = []*regexp.Regexp{regexp.MustCompile(`a`)}\n)": 1,
		"var x = func() { regexp.MustCompile(`a`) }":                         0,
		"func f() { regexp.MustCompile(`a`) }":                               0,
		"var x = lazyregexp.New(`a`)":                                        0,
	} {
		if got := eagerRegexps(mustParse(t, "a.go", "package a\n\n"+src)); len(got) != want {
			t.Errorf("%s: %d are found, want %d", src, len(got), want)
		}
	}
}
