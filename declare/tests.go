package declare

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/frontmatter"
)

// Test is a test of a declared hook. Its file has it in the key tests of the hook, or in a
// file that this key names.
type Test struct {
	// Name describes the test. It can be empty.
	Name string
	// File and Line are the position of the test.
	File string
	Line int
	// Input is the input of the phase.
	Input json.RawMessage
	// Want is what the hook must answer.
	Want Expectation
}

// Expectation is what a hook must answer in a test.
type Expectation struct {
	// Decision is a decision of the phase, such as pass or deny. It can also be skip: the
	// hook does not match the input; or fails: the hook ends with an error. Defaults to no
	// check of the decision, but then the hook must not fail.
	Decision string
	// Reason and Context are parts of the texts that the hook must give.
	Reason  string
	Context []string
	// Rewrite is the value that the hook must give for Key: input, prompt, result or
	// answer.
	Key     string
	Rewrite json.RawMessage
}

// These are decisions of tests only.
const (
	ExpectSkip  = "skip"
	ExpectFails = "fails"
)

// expected are the words for Expectation.Decision.
var expected = []string{"pass", "ask", "deny", "halt", "continue", "allow", ExpectSkip, ExpectFails}

// rewrites are the keys of Expectation.Key.
var rewrites = []string{"input", "prompt", "result", "answer"}

// testSource is the key tests of a hook, as it is written.
type testSource struct {
	value frontmatter.Value
	base  string // the directory that has the files of tests; "" if no files are read
}

// keepTests allows the key tests to name files below base.
func (d *Declaration) keepTests(base string) {
	if d.tests != nil {
		d.tests.base = base
	}
}

// Tests reads the tests of the hook, and the files of tests that it names. The error joins one
// [FaultError] for each mistake. Nothing but `belay hooks test` and `belay check` needs them: a
// hook with mistakes in its tests runs.
func (d *Declaration) Tests() ([]Test, error) {
	if d.tests == nil {
		return nil, nil
	}
	r := newReading()
	r.begin(d.File)
	var all []Test
	if v := d.tests.value; v.Kind == frontmatter.String {
		all = r.namedTests(d, v)
	} else {
		all = r.testList(d, v, true)
	}
	return all, errors.Join(r.faults...)
}

// ParseTests reads text as a file of tests of the hook. The file need not exist: its name is for
// errors, and its extension selects YAML or JSON. The error is like that of Tests.
func (d *Declaration) ParseTests(file string, text []byte) ([]Test, error) {
	r := newReading()
	r.begin(file)
	all := r.testFile(d, text)
	return all, errors.Join(r.faults...)
}

// testList reads a list of tests. With files, an entry can be the name of a file of tests.
func (r *reading) testList(d *Declaration, v frontmatter.Value, files bool) (all []Test) {
	switch {
	case v.Kind != frontmatter.List:
		r.faultf(v.Line, "tests is %s: write a list of tests, or the name of a file", v.Kind)
		return nil
	case len(v.List) == 0:
		r.faultf(v.Line, "the list of tests is empty: write a test, or remove the key tests")
		return nil
	}
	for _, item := range v.List {
		switch {
		case item.Kind != frontmatter.String:
			all = append(all, r.test(d, item))
		case files:
			all = append(all, r.namedTests(d, item)...)
		default:
			r.faultf(item.Line, "a test is a text: write a mapping, key: value; only the key tests of a hook names files")
		}
	}
	return all
}

func (r *reading) test(d *Declaration, v frontmatter.Value) Test {
	phase, t := d.Phase, Test{File: r.file, Line: v.Line}
	tool, has := "", make(map[string]int)
	args := json.RawMessage("{}")
	for _, f := range v.Map {
		has[f.Key] = f.Line
	}
	r.mapping(v, "a test", map[string]func(frontmatter.Value){
		"name": func(v frontmatter.Value) { t.Name = r.text(v, "name") },
		"tool": func(v frontmatter.Value) { tool = r.text(v, "tool") },
		"args": func(v frontmatter.Value) {
			if v.Kind != frontmatter.Map {
				r.faultf(v.Line, "args is %s: write the arguments of the call as a mapping", v.Kind)
			}
			args = asJSON(v)
		},
		"input": func(v frontmatter.Value) {
			if v.Kind != frontmatter.Map {
				r.faultf(v.Line, "input is %s: write the input of the phase as a mapping; `belay hooks schema %s` prints its schema", v.Kind, phase)
			}
			t.Input = asJSON(v)
		},
		"expect": func(v frontmatter.Value) { r.expectation(d, &t.Want, v) },
	})
	switch {
	case v.Kind != frontmatter.Map:
		return t
	case has["expect"] == 0:
		r.faultf(v.Line, "the test expects nothing: write expect: deny, or a mapping with decision, reason, context or input")
	case has["input"] > 0 && (has["tool"] > 0 || has["args"] > 0):
		r.faultf(has["input"], "input is the whole input of the phase: remove tool and args, or write only these")
	case has["input"] > 0:
	case phase != "tool.pre" && phase != "":
		r.faultf(v.Line, "tool and args are for tests at tool.pre: write input, the input of %s; `belay hooks schema %s` prints its schema", phase, phase)
	case has["tool"] == 0:
		r.faultf(v.Line, "the test has no input: write tool and args, or input")
	default:
		t.Input, _ = json.Marshal(map[string]any{"id": "call-1", "tool": tool, "input": args}) //nolint:errchkjson // texts and valid JSON
	}
	return t
}

func (r *reading) expectation(d *Declaration, to *Expectation, v frontmatter.Value) {
	decision := func(v frontmatter.Value) {
		r.word(v, "expect", expected, func(text string) error {
			if !slices.Contains(expected, text) {
				return hook.ErrNotFound
			}
			to.Decision = text
			return nil
		})
		if can := d.decisions(); to.Decision != "" && !slices.Contains(can, to.Decision) {
			r.faultf(v.Line, "expect: a hook at %s cannot answer %s: write one of %s", d.Phase, to.Decision, strings.Join(can, ", "))
		}
	}
	if v.Kind != frontmatter.Map {
		decision(v)
		return
	}
	form := map[string]func(frontmatter.Value){
		"decision": decision,
		"reason":   func(v frontmatter.Value) { to.Reason = r.text(v, "reason") },
		"context": func(v frontmatter.Value) {
			if v.Kind == frontmatter.String {
				to.Context = []string{r.text(v, "context")}
				return
			}
			to.Context = r.texts(v, "context")
		},
	}
	for _, key := range rewrites {
		form[key] = func(v frontmatter.Value) {
			if to.Key != "" {
				r.faultf(v.Line, "a test expects one of input, prompt, result and answer, but this one also expects %s", to.Key)
			}
			to.Key, to.Rewrite = key, asJSON(v)
		}
	}
	for key, read := range form {
		form[key] = func(v frontmatter.Value) {
			if key != "decision" && d.wire != nil && !d.wire.Gives(key) {
				r.faultf(v.Line, "expect: a hook at %s cannot give %s; `belay hooks schema %s` prints what it can answer", d.Phase, key, d.Phase)
			}
			read(v)
		}
	}
	r.mapping(v, "expect", form)
	if len(v.Map) == 0 {
		r.faultf(v.Line, "expect is empty: write what the hook must answer")
	}
}

// decisions are the words that a test of the hook can expect.
func (d *Declaration) decisions() []string {
	if d.wire == nil {
		return expected
	}
	can := d.wire.Decisions()
	if len(can) == 0 {
		can = []string{"pass"}
	}
	return append(slices.Clone(can), ExpectSkip, ExpectFails)
}

// namedTests reads a file of tests, which must be in the directory of the hooks or below it.
func (r *reading) namedTests(d *Declaration, v frontmatter.Value) (all []Test) {
	name := r.text(v, "tests")
	if name == "" {
		return nil
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(d.Dir, name)
	}
	if d.tests.base == "" {
		r.faultf(v.Line, "tests: %s: the hook was not read from a directory, so its files of tests are not read", name)
		return nil
	}
	text, err := readFile(d.tests.base, path)
	switch {
	case err != nil:
		r.faultf(v.Line, "tests: %s: %s", name, Faults(err)[0].Message)
	case len(text) > Limit:
		r.faultf(v.Line, "tests: %s has more than %d KiB: split it", name, Limit>>10)
	default:
		file := r.file
		r.file = path
		all = r.testFile(d, text)
		r.file = file
	}
	return all
}

func (r *reading) testFile(d *Declaration, text []byte) (all []Test) {
	root, err := r.document(text)
	if err != nil {
		r.unread(err)
		return nil
	}
	before := len(r.faults)
	found := false
	r.mapping(root, "a file of tests", map[string]func(frontmatter.Value){
		"tests": func(v frontmatter.Value) { found, all = true, r.testList(d, v, false) },
	})
	if !found && len(r.faults) == before {
		r.faultf(1, "the file has no tests: it needs the key tests, with a list")
	}
	return all
}
