package declare

import (
	"encoding/json"
	"path/filepath"
	"slices"

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

// tests reads the key tests: a list, or the name of a file.
func (h *hookReading) tests(v frontmatter.Value) {
	if v.Kind == frontmatter.String {
		h.testFiles[h.d] = h.text(v, "tests")
		return
	}
	h.d.Tests = h.testList(v, h.d.Phase)
}

func (r *reading) testList(v frontmatter.Value, phase string) (all []Test) {
	if v.Kind != frontmatter.List || len(v.List) == 0 {
		r.faultf(v.Line, "tests is %s: write a list of tests, or the name of a file", v.Kind)
		return nil
	}
	for _, item := range v.List {
		all = append(all, r.test(item, phase))
	}
	return all
}

func (r *reading) test(v frontmatter.Value, phase string) Test {
	t := Test{File: r.file, Line: v.Line}
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
		"expect": func(v frontmatter.Value) { r.expectation(&t.Want, v) },
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

func (r *reading) expectation(to *Expectation, v frontmatter.Value) {
	decision := func(v frontmatter.Value) {
		r.word(v, "expect", expected, func(text string) error {
			if !slices.Contains(expected, text) {
				return hook.ErrNotFound
			}
			to.Decision = text
			return nil
		})
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
	r.mapping(v, "expect", form)
	if len(v.Map) == 0 {
		r.faultf(v.Line, "expect is empty: write what the hook must answer")
	}
}

// readTests reads the file that the key tests of a hook names. It must be below base.
func (r *reading) readTests(base string, d *Declaration) {
	name, ok := r.testFiles[d]
	if !ok || name == "" {
		return
	}
	before, line := len(r.faults), r.lines[d]["tests"]
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(d.Dir, name)
	}
	text, err := readFile(base, path)
	switch {
	case err != nil:
		r.faultf(line, "tests: %s: %s", name, Faults(err)[0].Message)
	case len(text) > Limit:
		r.faultf(line, "tests: %s has more than %d KiB: split it", name, Limit>>10)
	default:
		file := r.file
		r.file = path
		r.testFile(d, text)
		r.file = file
	}
	r.faulty[d] = r.faulty[d] || len(r.faults) > before
}

func (r *reading) testFile(d *Declaration, text []byte) {
	root, err := r.document(text)
	if err != nil {
		r.unread(err)
		return
	}
	before := len(r.faults)
	found := false
	r.mapping(root, "a file of tests", map[string]func(frontmatter.Value){
		"tests": func(v frontmatter.Value) { found, d.Tests = true, r.testList(v, d.Phase) },
	})
	if !found && len(r.faults) == before {
		r.faultf(1, "the file has no tests: it needs the key tests, with a list")
	}
}
