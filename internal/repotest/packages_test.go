package repotest_test

import (
	"go/ast"
	"go/doc/comment"
	"path"
	"slices"
	"strings"
	"testing"
)

// longComment is how many lines a package comment may have outside of doc.go.
const longComment = 10

// docHeadings are the headings that the doc.go of a public package must have.
var docHeadings = []string{"Usage", "Concurrency", "Errors", "Testing"}

func TestPackagesAreDocumented(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{}
	for _, file := range goFiles(t, func(f *goFile) bool { return !f.isTest && !ast.IsGenerated(f.syntax) }) {
		documented[file.dir()] = documented[file.dir()] || file.syntax.Doc != nil
		for _, problem := range packageCommentProblems(file) {
			t.Errorf("%s: %s", file.at(file.syntax.Package), problem)
		}
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s: the package has no comment: say in one file, above the package clause, what it is for", dir)
		}
	}
}

// packageCommentProblems returns what is wrong with the package comment of a file. A file
// without a package comment has no problems.
func packageCommentProblems(file *goFile) []string {
	if file.syntax.Doc == nil {
		return nil
	}
	var problems []string
	name, text := file.syntax.Name.Name, file.syntax.Doc.Text()
	if name != "main" && !strings.HasPrefix(text, "Package "+name+" ") {
		problems = append(problems, `the package comment must begin "Package `+name+` ", as go doc expects`)
	}
	if path.Base(file.path) != "doc.go" {
		if strings.Count(text, "\n") > longComment {
			problems = append(problems, "a package comment of more than ten lines lives in doc.go: move it there")
		}
		return problems
	}
	if !isPublic(file.dir()) || name == "main" {
		return problems
	}
	headings := headingsOf(file.syntax.Doc)
	for _, want := range docHeadings {
		if !slices.Contains(headings, want) {
			problems = append(problems, `the package comment lacks the heading "# `+want+`": a reader looks for it in every package`)
		}
	}
	return problems
}

// headingsOf returns the headings of a doc comment, as go doc reads them.
func headingsOf(doc *ast.CommentGroup) []string {
	var headings []string
	var parser comment.Parser
	for _, block := range parser.Parse(doc.Text()).Content {
		heading, ok := block.(*comment.Heading)
		if !ok {
			continue
		}
		var text strings.Builder
		for _, part := range heading.Text {
			if plain, ok := part.(comment.Plain); ok {
				text.WriteString(string(plain))
			}
		}
		headings = append(headings, text.String())
	}
	return headings
}

// isPublic reports whether the package in a directory is meant to be imported by other
// modules.
func isPublic(dir string) bool {
	for element := range strings.SplitSeq(dir, "/") {
		if slices.Contains([]string{"cmd", "examples", "internal"}, element) {
			return false
		}
	}
	return true
}

func TestPackagesRule(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("// It goes on.\n", longComment)
	headings := "//\n// # Usage\n//\n// Text.\n//\n// # Concurrency\n//\n// Text.\n//\n// # Errors\n//\n// Text.\n//\n// # Testing\n//\n// Text.\n"
	for _, test := range []struct {
		rule string
		path string
		src  string
		want string // part of the only problem; "" if there is none
	}{
		{"a short comment may live in any file", "a/order.go", "// Package a orders.\npackage a\n", ""},
		{"a comment names its package", "a/order.go", "// Orders things.\npackage a\n", `must begin "Package a "`},
		{"a command words its comment freely", "cmd/a/main.go", "// Runs things.\npackage main\n", ""},
		{"a long comment lives in doc.go", "a/order.go", "// Package a orders.\n" + long + "package a\n", "lives in doc.go"},
		{"doc.go has all headings", "a/doc.go", "// Package a orders.\n" + headings + "package a\n", ""},
		{"doc.go lacks a heading", "a/doc.go", "// Package a orders.\n" + strings.Replace(headings, "# Errors", "# Faults", 1) + "package a\n", `"# Errors"`},
		{"an internal package needs no headings", "internal/a/doc.go", "// Package a orders.\npackage a\n", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(packageCommentProblems(mustParse(t, test.path, test.src)), "; ")
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("problems = %q, want %q in it", got, test.want)
			}
		})
	}
}
