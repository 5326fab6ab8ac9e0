package repotest_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// emptyWords say nothing about the thing they name.
var emptyWords = []string{"Manager", "Service", "Processor", "Helper", "Util", "Base", "Callback", "Middleware"}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, file := range goFiles(t, handWritten) {
		for _, problem := range nameProblems(file) {
			t.Error(problem)
		}
	}
}

// nameProblems finds the declarations of a file that break a rule about names.
func nameProblems(file *goFile) []string {
	var problems []string
	report := func(pos token.Pos, format string, args ...any) {
		problems = append(problems, file.at(pos)+": "+fmt.Sprintf(format, args...))
	}
	for _, decl := range file.syntax.Decls {
		function, ok := decl.(*ast.FuncDecl)
		if !ok || function.Recv != nil {
			continue
		}
		switch name := function.Name.Name; {
		case name == "init":
			report(function.Pos(), "func init registers things behind the reader's back: let the caller construct them")
		case ast.IsExported(name) && words(name)[0] == "With":
			report(function.Pos(), "%s: options are fields of an Options struct, not With functions", name)
		}
	}
	for _, name := range exportedNames(file.syntax) {
		if problem := nameProblem(name.Name); problem != "" {
			report(name.Pos(), "%s: %s", name.Name, problem)
		}
	}
	for _, spec := range typeSpecs(file.syntax) {
		if spec.Name.Name == "Hook" {
			report(spec.Pos(), "no type is called Hook: it is a Phase, a Subscription or a Handler")
		}
	}
	return problems
}

// nameProblem returns what is wrong with an exported name, or "". It compares whole words:
// Database does not contain the word Base.
func nameProblem(name string) string {
	all := words(name)
	for _, word := range all {
		if slices.Contains(emptyWords, strings.TrimSuffix(word, "s")) {
			return fmt.Sprintf("%q says nothing: name the thing after what it is or does", word)
		}
	}
	switch {
	case all[0] == "Get":
		return "an accessor is named after what it returns, without Get"
	case all[len(all)-1] == "Fn":
		return "name a function type after what it does, without Fn"
	}
	return ""
}

// exportedNames returns every exported name that a file declares: types, functions,
// methods, constants and variables, and also fields and interface methods.
func exportedNames(file *ast.File) []*ast.Ident {
	var names []*ast.Ident
	add := func(idents ...*ast.Ident) {
		for _, ident := range idents {
			if ident.IsExported() {
				names = append(names, ident)
			}
		}
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil || ast.IsExported(receiver(decl)) { // otherwise the name comes from an interface
				add(decl.Name)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if value, ok := spec.(*ast.ValueSpec); ok {
					add(value.Names...)
				}
			}
		}
	}
	for _, spec := range typeSpecs(file) {
		add(spec.Name)
		ast.Inspect(spec.Type, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.FuncType:
				return false // names of parameters do not count
			case *ast.Field:
				add(node.Names...)
			}
			return true
		})
	}
	return names
}

// receiver returns the name of a method's type.
func receiver(method *ast.FuncDecl) string {
	name := ""
	ast.Inspect(method.Recv.List[0].Type, func(node ast.Node) bool {
		if ident, ok := node.(*ast.Ident); ok && name == "" {
			name = ident.Name
		}
		return true
	})
	return name
}

// typeSpecs returns the types that a file declares at package level.
func typeSpecs(file *ast.File) []*ast.TypeSpec {
	var specs []*ast.TypeSpec
	for _, decl := range file.Decls {
		if decl, ok := decl.(*ast.GenDecl); ok {
			for _, spec := range decl.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok {
					specs = append(specs, spec)
				}
			}
		}
	}
	return specs
}

// words splits an identifier into words. A word begins at an upper-case letter after a
// lower-case letter or a digit, and at the last of several upper-case letters: ToolHTTPGet
// is Tool, HTTP, Get.
func words(name string) []string {
	runes := []rune(name)
	var all []string
	start := 0
	for i := 1; i < len(runes); i++ {
		upper, before := unicode.IsUpper(runes[i]), unicode.IsUpper(runes[i-1])
		nextLower := i+1 < len(runes) && unicode.IsLower(runes[i+1])
		if runes[i-1] == '_' || upper && (!before || nextLower) {
			all = append(all, strings.Trim(string(runes[start:i]), "_"))
			start = i
		}
	}
	return append(all, string(runes[start:]))
}

func TestNamesRule(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule string
		src  string
		want string // part of the only problem; "" if there is none
	}{
		{"an empty word in a type is refused", "type HookManager struct{}", "HookManager"},
		{"an empty word in the plural is refused", "var Helpers int", "Helpers"},
		{"an empty word in a field is refused", "type Options struct{ BaseURL string }", "BaseURL"},
		{"an empty word in an interface is refused", "type Store interface{ RunCallback() }", "RunCallback"},
		{"an empty word in a constant is refused", "const MaxMiddleware = 1", "MaxMiddleware"},
		{"an unexported name is free", "type manager struct{ base int }", ""},
		{"a longer word is another word", "type Database struct{ Utility, Baseline int }", ""},
		{"a method that begins with Get is refused", "func (r *Run) GetID() string { return \"\" }", "without Get"},
		{"a function that begins with Get is refused", "func GetRun() {}", "without Get"},
		{"a word that begins like Get is free", "func Getaway() {}", ""},
		{"a name that ends in Fn is refused", "type HandlerFn func()", "without Fn"},
		{"a With function is refused", "func WithTimeout() {}", "Options struct"},
		{"a With method is free", "func (r *Run) WithState() {}", ""},
		{"a word that begins like With is free", "func Withhold() {}", ""},
		{"a type called Hook is refused", "type Hook struct{}", "no type is called Hook"},
		{"a function called Hook is free", "func Hook() {}", ""},
		{"init is refused", "func init() {}", "func init"},
		{"a method called init is free", "func (r *Run) init() {}", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			problems := nameProblems(mustParse(t, "a/a.go", "package a\n\n"+test.src+"\n"))
			got := strings.Join(problems, "; ")
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) || len(problems) > 1 {
				t.Errorf("problems = %q, want one with %q in it", got, test.want)
			}
		})
	}
}
