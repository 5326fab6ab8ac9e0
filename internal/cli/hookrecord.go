package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/frontmatter"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/internal/redact"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/internal/wholefile"
	"github.com/belay-run/belay/serve/api"
	"github.com/belay-run/belay/space"
)

// recording makes tests for one hook. Each expects what the hook answers now.
type recording struct {
	// ask returns what the hook does with the input of a test.
	ask func(input json.RawMessage) (*hook.Explained, error)
	// read reads a file of tests, as the command that runs them does.
	read func(text []byte) ([]declare.Test, error)

	text  bytes.Buffer // the file of tests
	count int
	known map[string]bool
	names map[string]int
	left  map[leftOut]int
}

// add makes a test of a case, unless the same test is there already.
func (r *recording) add(c recordedCase) error {
	input, changed := withoutSecrets(c.input)
	body := fmt.Sprintf("    input: %s\n", input)
	if c.tool != "" {
		body = fmt.Sprintf("    tool: %s\n    args: %s\n", quotedJSON(c.tool), input)
	}
	if r.known[body] {
		return nil
	}
	r.known[body] = true
	if hasNameTwice(input) {
		r.leave(leftNames)
		return nil
	}
	name := redact.Text(c.name)
	if n := r.names[name] + 1; n > 1 {
		name += fmt.Sprintf(" (%d)", n)
	}
	head := fmt.Sprintf("  - name: %s\n", quotedJSON(name))
	if changed {
		head += "    # secrets were removed from this input\n"
	}
	test := func(expect string) string { return head + body + "    expect: " + expect + "\n" }
	tests, err := r.read([]byte("tests:\n" + test(declare.ExpectSkip)))
	fits := err == nil && len(tests) == 1 && sameJSON(json.RawMessage(input), inputOf(&tests[0], c.tool))
	switch {
	case !fits:
		r.leave(leftForm)
		return nil
	case !frontmatter.Fits(r.text.String() + test(declare.ExpectSkip)):
		r.leave(leftFull)
		return nil
	}
	e, err := r.ask(tests[0].Input)
	if err != nil {
		return err
	}
	expect := expectationOf(e)
	_, unread := r.read([]byte("tests:\n" + test(expect)))
	switch {
	case expect == "":
		r.leave(leftFailed)
	case unread != nil:
		r.leave(leftForm)
	case !frontmatter.Fits(r.text.String() + test(expect)):
		r.leave(leftFull)
	default:
		r.text.WriteString(test(expect))
		r.names[redact.Text(c.name)]++
		r.count++
	}
	return nil
}

func (r *recording) leave(why leftOut) { r.left[why]++ }

// inputOf returns what a test has for a case: the arguments of a tool, or the whole input.
func inputOf(t *declare.Test, tool string) json.RawMessage {
	if tool == "" {
		return t.Input
	}
	var call struct {
		Tool  string          `json:"tool"`
		Input json.RawMessage `json:"input"`
	}
	if json.Unmarshal(t.Input, &call) != nil || call.Tool != tool {
		return nil
	}
	return call.Input
}

// expectationOf returns the value of expect for what a hook did, or "" if it failed. It leaves out
// a reason and a value with secrets.
func expectationOf(e *hook.Explained) string {
	switch {
	case !e.Asked:
		return declare.ExpectSkip
	case e.State != hook.Completed:
		return ""
	}
	said := make(map[string]json.RawMessage)
	_ = json.Unmarshal(e.Said, &said) // a hook without an answer has said nothing
	decision := cmp.Or(textOf(said["decision"]), "pass")
	expect := []string{"decision: " + decision}
	if reason := textOf(said["reason"]); reason != "" && redact.Text(reason) == reason {
		expect = append(expect, "reason: "+quotedJSON(reason))
	}
	for _, key := range []string{"input", "prompt", "result", "answer"} {
		if value := said[key]; value != nil && string(value) != "null" && bytes.Equal(redact.JSON(value), value) {
			expect = append(expect, key+": "+printable(value))
			break // a test expects one value
		}
	}
	if len(expect) == 1 {
		return decision
	}
	return "{" + strings.Join(expect, ", ") + "}"
}

// recordTests prints tests for a hook, with cases from sessions and the answers that the hook gives
// now. With file, it writes them to this new file instead.
func (a *app) recordTests(ctx context.Context, v *inspect.Hooks, h *testedHook, sessions []string, file string) error {
	id, phase := h.sub.ID(), h.sub.Phase().Name()
	take := recorders[phase]
	if take == nil {
		return usage("hook %s is at %s: --record makes tests for hooks at %s", id, phase, strings.Join(slices.Sorted(maps.Keys(recorders)), ", "))
	}
	file = a.at(file)
	if err := a.checkOutput(v, h, file); err != nil {
		return err
	}
	if why := whyOff(v, h); why != "" {
		return fmt.Errorf("hook %s cannot answer, so there is nothing to expect of it: %s", id, why)
	}
	return a.records(ctx, func(r records) error {
		var found []api.Session
		var ids []string
		for _, word := range sessions {
			session, err := findRecord(ctx, r, word)
			if err != nil {
				return err
			}
			found, ids = append(found, session), append(ids, visible.OneLine(session.ID))
		}
		from := "session " + strings.Join(ids, ", ")
		if len(ids) > 1 {
			from = "sessions " + strings.Join(ids, ", ")
		}
		made := &recording{known: make(map[string]bool), names: make(map[string]int), left: make(map[leftOut]int)}
		made.ask = func(input json.RawMessage) (*hook.Explained, error) { return a.askAlone(ctx, v, h, input) }
		made.read = func(text []byte) ([]declare.Test, error) { return h.declared.ParseTests("tests.yaml", text) }
		fmt.Fprintf(&made.text, `# Tests of %s, with cases from %s.
# Each expects what the hook answered when it was recorded: review these answers.
# They quote what was said there: read them before you share them.
tests:
`, id, from)
		hooked := newRecordedHook(h.sub)
		for i := range found {
			has, err := pastOf(ctx, r, &found[i], phase)
			if err != nil {
				return err
			}
			var failed error
			take(has, hooked, func(c recordedCase) {
				if failed == nil {
					failed = made.add(c)
				}
			}, made.leave)
			if failed != nil {
				return failed
			}
		}
		for _, why := range slices.Sorted(maps.Keys(made.left)) {
			a.remarkf("%s left out: %s", visible.Counted(made.left[why], "case"), why)
		}
		if made.count == 0 {
			return fmt.Errorf("%s: nothing there can be a test of %s at %s", from, id, phase)
		}
		if _, err := made.read(made.text.Bytes()); err != nil {
			return fmt.Errorf("the tests cannot be read back: %w", err)
		}
		if file != "" {
			return a.createTests(v, h, file, made)
		}
		_, err := a.out.Write(made.text.Bytes())
		return err //nolint:wrapcheck // the writer's own error
	})
}

// checkOutput returns an error if no hook can use a file of tests with this name.
func (a *app) checkOutput(v *inspect.Hooks, h *testedHook, file string) error {
	if file == "" {
		return nil
	}
	if ext := filepath.Ext(file); !strings.EqualFold(ext, ".yaml") && !strings.EqualFold(ext, ".yml") {
		return usage("--output: tests are written as YAML: name a file that ends in .yaml")
	}
	place := v.Places.Of(h.declared.File)
	if place == nil {
		return nil
	}
	if hooks := filepath.Join(place.Dir, "hooks"); isBelow(hooks, file) {
		return usage("--output: every file in %s must declare hooks: write the tests to %s", assembly.ShownPath(v.Settings, hooks), assembly.ShownPath(v.Settings, filepath.Join(place.Dir, "tests", filepath.Base(file))))
	}
	return nil
}

// isBelow reports whether a file, which need not exist, is in a directory or below it.
func isBelow(dir, file string) bool {
	full, err := filepath.Abs(file)
	if err != nil {
		return false
	}
	for parent := filepath.Dir(full); ; parent = filepath.Dir(parent) {
		if sameFile(parent, dir) {
			return true
		}
		if parent == filepath.Dir(parent) {
			return false
		}
	}
}

// createTests writes a new file of tests, whole or not at all, and says what to do with it.
func (a *app) createTests(v *inspect.Hooks, h *testedHook, file string, made *recording) error {
	err := os.MkdirAll(filepath.Dir(file), 0o755) // like the other directories of a project
	if err == nil {
		err = wholefile.Create(file, made.text.Bytes())
	}
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: name a new file, or remove this one first", file)
	}
	if err == nil {
		err = os.Chmod(file, 0o644) // like the other files of a project
	}
	if err != nil {
		return fmt.Errorf("write the tests: %w", err)
	}
	a.remarkf("%s in %s", visible.Counted(made.count, "test"), file)
	for _, line := range nextSteps(v, h, file) {
		a.remarkf("next:  %s", line)
	}
	return nil
}

// nextSteps returns what a person must do so that a new file of tests is used.
func nextSteps(v *inspect.Hooks, h *testedHook, file string) []string {
	run := fmt.Sprintf("review the answers; `belay hooks test %s` runs the tests", h.sub.ID())
	tests, _ := h.declared.Tests() // "belay hooks test" reports mistakes
	if slices.ContainsFunc(tests, func(t declare.Test) bool { return sameFile(t.File, file) }) {
		return []string{run}
	}
	place := v.Places.Of(h.declared.File)
	if place == nil || !isBelow(place.Dir, file) {
		return []string{"move the file below the directory of the hooks, and name it in the key tests of the hook: docs/hook-tests.md shows how"}
	}
	name := file
	if full, err := filepath.Abs(file); err == nil {
		if rel, err := filepath.Rel(assembly.RealDir(h.declared.Dir), assembly.RealDir(full)); err == nil {
			name = rel
		}
	}
	add := "add `tests: %s` to the hook in %s:%d"
	if len(tests) > 0 {
		add = "add `%s` to the key tests of the hook in %s:%d, which takes a list"
	}
	steps := []string{fmt.Sprintf(add, filepath.ToSlash(name), assembly.ShownPath(v.Settings, h.declared.File), h.declared.Line)}
	if standing, err := v.Places.Host.Standing(place); err == nil && standing.Record != nil {
		steps = append(steps, "run `"+trustAgain(place, standing.Record)+"`, because the file of the hook has changed")
	}
	return append(steps, run)
}

// trustAgain returns the command that trusts a directory as it was trusted before.
func trustAgain(place *space.Space, record *space.Record) string {
	command := "belay trust"
	if place.Origin.Kind != hook.OriginProject {
		command += " " + quoted(place.Dir)
	}
	if len(record.Grants) > 0 {
		command += " --grant " + strings.Join(record.Grants, ",")
	}
	return command
}

// quotedJSON returns a text as JSON, which is also YAML.
func quotedJSON(text string) string { return encoded(text) }

// withoutSecrets returns an input as JSON, without what looks like a secret. changed reports
// whether something was removed.
func withoutSecrets(input map[string]any) (text string, changed bool) {
	before := encoded(input)
	text = printable(redact.JSON(json.RawMessage(before)))
	return text, text != before
}

// hasNameTwice reports whether an object in a text of withoutSecrets has two fields with one name.
// Only one of them is left when the text is decoded.
func hasNameTwice(text string) bool {
	object, _ := objectOf(json.RawMessage(text))
	return len(encoded(object)) < len(text)
}

// encoded returns a value that was decoded from JSON as JSON.
func encoded(value any) string {
	var out bytes.Buffer
	encode := json.NewEncoder(&out)
	encode.SetEscapeHTML(false)
	_ = encode.Encode(value) //nolint:errchkjson // it was decoded from JSON
	return printable(bytes.TrimSpace(out.Bytes()))
}

// printable escapes the control character of JSON texts that YAML does not allow.
func printable(value []byte) string { return strings.ReplaceAll(string(value), "\x7f", `\u007f`) }
