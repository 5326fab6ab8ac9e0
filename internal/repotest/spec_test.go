package repotest_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// specFile holds the promises. A promise is a list item with an id, a state, a colon and a
// text.
const specFile = "docs/spec.md"

var (
	promiseLine  = regexp.MustCompile(`^- \*\*([A-Z]-[0-9]{2})\*\* \*(kept|kept in part|planned)\*: \S`)
	citationLine = regexp.MustCompile(`^// SPEC ([A-Z]-[0-9]{2}(?:, [A-Z]-[0-9]{2})*)(?:[.:;] .*|\.)?$`)
	testName     = regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)([^a-z]|$)`)
)

// A citation is a test that names a promise in a comment.
type citation struct {
	id   string
	test string // the name of the test function
	at   string // the position of the comment
}

func TestSpec(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(specFile)
	if err != nil {
		t.Fatal(err)
	}
	states, err := promises(string(text))
	if err != nil {
		t.Fatal(err)
	}
	cited := map[string][]citation{}
	for _, file := range goFiles(t, func(f *goFile) bool { return f.isTest }) {
		found, err := citations(file)
		if err != nil {
			t.Error(err)
		}
		for _, c := range found {
			cited[c.id] = append(cited[c.id], c)
			if states[c.id] == "" {
				t.Errorf("%s: %s cites %s, which %s does not promise: correct the id or add the promise", c.at, c.test, c.id, specFile)
			}
		}
	}
	var report strings.Builder
	for _, id := range slices.Sorted(maps.Keys(states)) {
		if states[id] != "planned" && len(cited[id]) == 0 {
			t.Errorf("%s: %s is marked %q and no test cites it: prove it with a test under a comment \"// SPEC %s\", or mark it planned", specFile, id, states[id], id)
		}
		fmt.Fprintf(&report, "\n%s %s", id, states[id])
		for _, c := range cited[id] {
			fmt.Fprintf(&report, "\n\t%s\t%s", c.at, c.test)
		}
	}
	t.Log(report.String())
}

// promises returns the state of each promise by its id. It is an error if a line looks like
// a promise and cannot be read, so that a typing error does not lose a promise.
func promises(text string) (map[string]string, error) {
	states := map[string]string{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if !strings.HasPrefix(line, "- **") {
			continue
		}
		match := promiseLine.FindStringSubmatch(line)
		if match == nil {
			return nil, fmt.Errorf("%s:%d: not a promise: write \"- **X-01** *kept*: text\", with the state kept, kept in part or planned", specFile, number)
		}
		if states[match[1]] != "" {
			return nil, fmt.Errorf("%s:%d: %s is there twice: give the new promise an id of its own", specFile, number, match[1])
		}
		states[match[1]] = match[2]
	}
	if len(states) == 0 {
		return nil, fmt.Errorf("%s: no promise found", specFile)
	}
	return states, nil
}

// citations returns the citations in a test file. A comment inside or directly above a test
// belongs to that test. Every other comment belongs to the next test in the file.
func citations(file *goFile) ([]citation, error) {
	var found []citation
	var problems []error
	for _, group := range file.syntax.Comments {
		for _, comment := range group.List {
			if !strings.HasPrefix(comment.Text, "// SPEC ") {
				continue
			}
			match := citationLine.FindStringSubmatch(comment.Text)
			if match == nil {
				problems = append(problems, fmt.Errorf("%s: cannot read %q: write \"// SPEC H-01, H-02\", and a colon before any further words", file.at(comment.Pos()), comment.Text))
				continue
			}
			test := testAt(file.syntax, comment.Pos())
			if test == "" {
				problems = append(problems, fmt.Errorf("%s: the citation belongs to no test: put it into one or above it", file.at(comment.Pos())))
				continue
			}
			for id := range strings.SplitSeq(match[1], ", ") {
				found = append(found, citation{id: id, test: test, at: file.at(comment.Pos())})
			}
		}
	}
	return found, errors.Join(problems...)
}

// testAt returns the name of the first test that ends after a position.
func testAt(file *ast.File, pos token.Pos) string {
	for _, decl := range file.Decls {
		function, ok := decl.(*ast.FuncDecl)
		if ok && function.Recv == nil && testName.MatchString(function.Name.Name) && pos < function.End() {
			return function.Name.Name
		}
	}
	return ""
}

func TestSpecRule(t *testing.T) {
	t.Parallel()
	for rule, text := range map[string]string{
		"a promise needs a state":       "- **H-01** A phase is a value.\n",
		"a state is one of three":       "- **H-01** *done*: A phase is a value.\n",
		"an id is there once":           "- **H-01** *kept*: A.\n- **H-01** *kept*: B.\n",
		"a page without promises is no": "# Spec\n",
	} {
		if states, err := promises(text); err == nil {
			t.Errorf("%s: promises(%q) = %v, want an error", rule, text, states)
		}
	}
	const cite = "// SPEC " // separate from the ids, so that this file does not cite them
	src := "package a\n\n" +
		cite + "H-01, H-02\nfunc TestAbove(t *T) {\n\t" + cite + "H-03: inside.\n\tx()\n}\n\n" +
		"func fixture() {\n\t" + cite + "H-04\n}\n\nvar x = 1 " + cite + "H-05.\n\nfunc FuzzNext(f *F) {}\n"
	got, err := citations(mustParse(t, "a/a_test.go", src))
	if err != nil {
		t.Fatal(err)
	}
	want := []citation{
		{"H-01", "TestAbove", "a/a_test.go:3"},
		{"H-02", "TestAbove", "a/a_test.go:3"},
		{"H-03", "TestAbove", "a/a_test.go:5"},
		{"H-04", "FuzzNext", "a/a_test.go:10"},
		{"H-05", "FuzzNext", "a/a_test.go:13"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("citations =\n%v, want\n%v", got, want)
	}
	for rule, src := range map[string]string{
		"an id that cannot be read is an error":     cite + "H-1\nfunc TestA(t *T) {}",
		"ids are separated by commas":               cite + "H-01 H-02\nfunc TestA(t *T) {}",
		"a citation after the last test is refused": "func TestA(t *T) {}\n\n" + cite + "H-01",
	} {
		if got, err := citations(mustParse(t, "a/a_test.go", "package a\n\n"+src+"\n")); err == nil {
			t.Errorf("%s: citations = %v, want an error", rule, got)
		}
	}
}
